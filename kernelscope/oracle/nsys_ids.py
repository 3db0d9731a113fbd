"""Identifiers of an Nsight Systems export: strings by number, threads and processes packed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]

VM = 1 << 48
"""The virtual machine's number, as it stands in every serialized global id of one plain run."""


def global_ids(processes: npt.NDArray[Any], threads: npt.NDArray[Any] | None = None) -> Int64s:
    """Pack process and thread ids as exports do: VM, 24 bits of process, 24 bits of thread.

    Parameters
    ----------
    processes : ndarray of int, shape (n,)
        Operating-system ids.
    threads : ndarray of int, shape (n,), optional
        Without it the ids of the processes themselves (``globalPid``).
    """
    packed = VM | (processes.astype(np.int64) << 24)
    return packed if threads is None else packed | threads


def global_id(process: int, thread: int = 0) -> int:
    """Pack one process and thread id; see :func:`global_ids`."""
    return VM | (process << 24) | thread


class Strings:
    """The table of strings of one export, numbered as they come up."""

    def __init__(self) -> None:
        # Every real export begins with strings that have nothing to do with the run, and
        # their numbers are used: 0 is a valid id.
        self._ids = {"[Unknown]": 0, "[kernel.kallsyms]": 1}

    def id(self, text: str) -> int:
        """Return the number of `text`, giving it one if it has none yet."""
        return self._ids.setdefault(text, len(self._ids))

    @property
    def texts(self) -> tuple[str, ...]:
        """The strings in the order of their numbers."""
        return tuple(self._ids)
