"""Keep freed memory for the next array: a fifth of the work on a large trace is page faults.

glibc gives the memory of a large array back to the system as soon as it is freed, and the system
fills the next one with zeros, page by page. An analysis makes hundreds of such arrays one after
the other. The command line is the only thing in its process, so it may ask the allocator to keep
what is freed; a library must not, and kernelscope as a library does not.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # malloc.h of glibc
_NEVER = 2**31 - 1


def keep_freed_memory() -> None:
    """Tell glibc's malloc to take memory from the heap and to keep it; elsewhere do nothing."""
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, AttributeError):  # musl has no mallopt
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, _NEVER)
