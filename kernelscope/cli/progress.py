"""A progress bar on stderr: only on a terminal, and only for work that takes its time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kernelscope.report.printable import printable

DELAY_S = 0.5
"""Work that is done by then shows nothing."""


@contextmanager
def progress(steps: int) -> Iterator[Callable[[str], None]]:
    """Show how far a work of several `steps` is.

    Yields
    ------
    callable
        Call it with what begins now, at the start of each step.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    bar = _Bar(steps)
    timer = threading.Timer(DELAY_S, bar.show)
    timer.daemon = True
    timer.start()
    try:
        yield bar.step
    finally:
        timer.cancel()
        timer.join()
        bar.hide()


class _Bar:
    """A bar that may be told of steps before it is shown."""

    def __init__(self, steps: int) -> None:
        self._steps, self._begun, self._what = steps, 0, ""
        self._hide: Callable[[], None] | None = None
        self._update: Callable[[], None] | None = None

    def step(self, what: str) -> None:
        self._begun, self._what = self._begun + 1, printable(what)
        if self._update:
            self._update()

    def show(self) -> None:
        # Imported here, on the timer's thread: 60 ms that quick work does not pay.
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        shown = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        task = shown.add_task(self._what, total=self._steps, completed=self._begun - 1)
        self._update = lambda: shown.update(task, description=self._what, completed=self._begun - 1)
        self._hide = shown.stop
        shown.start()
        self._update()  # a step may have begun while the bar was made

    def hide(self) -> None:
        if self._hide:
            self._hide()
