"""What the command line asks of its process, which holds nothing else; a library must not.

A fifth of the work on a large trace would be page faults, and a tenth of that on a small one the
search for garbage.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import sys

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # malloc.h of glibc
_MADV_HUGEPAGE = 14  # asm-generic/mman-common.h of Linux
_NEVER = -1
_HUGE_PAGE = 1 << 21
_RESERVED = 4 << 30
"""Addresses of the heap that may be filled by huge pages; they are not memory until then."""
_OBJECTS = 100_000


def keep_freed_memory() -> None:
    """Tell glibc's malloc to take memory from the heap and to keep it; elsewhere do nothing.

    It would give the memory of a large array back to the system as soon as it is freed, and the
    system fill the next one with zeros, page by page. An analysis makes hundreds of such arrays
    one after the other. What memory it does need for the first time comes in pages of 2 MiB,
    where the system has them: one page fault in place of 512.
    """
    import ctypes  # noqa: PLC0415 - not for --help

    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, AttributeError):  # musl has no mallopt
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, _NEVER)
        libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
        libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        heap = libc.malloc(_RESERVED)
        if heap:  # a system that promises no more memory than it has may refuse
            first = -(-heap // _HUGE_PAGE) * _HUGE_PAGE
            libc.madvise(first, heap + _RESERVED - first, _MADV_HUGEPAGE)
            libc.free(heap)  # it stays part of the heap


def collect_rarely() -> None:
    """Look for circles of garbage once in `_OBJECTS`, not 700, new objects, and not at the exit.

    Modules and classes are what a short run makes the most of, and they stay.
    """
    gc.set_threshold(_OBJECTS)
    atexit.register(gc.freeze)
