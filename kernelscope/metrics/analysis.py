"""Everything that `kernelscope analyze` says of a trace, in one frozen value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kernelscope.metrics.api_calls import api_calls
from kernelscope.metrics.copies import copies, copies_by_kind
from kernelscope.metrics.health import capture_cost, health
from kernelscope.metrics.kernels import kernels, kernels_by_device, launch_shapes
from kernelscope.metrics.selection import select, window_between
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Capture, Table, Trace

Metric = Callable[[Trace, Window], Table]

METRICS: dict[str, Metric] = {
    "kernels": kernels,
    "kernels_by_device": kernels_by_device,
    "launch_shapes": launch_shapes,
    "api_calls": api_calls,
    "copies": copies,
    "copies_by_kind": copies_by_kind,
    "capture_cost": capture_cost,
}
"""Result table → the function that makes it; a new metric is a function and a line here."""


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """The result of :func:`analyze`.

    Attributes
    ----------
    capture : Capture
        What the file says about itself.
    window : Window
        The interval that every figure speaks of.
    tables : mapping of str to Table
        The result tables of :mod:`kernelscope.metrics.results` by name; each is an attribute,
        too: ``analysis.kernels.df``.
    """

    capture: Capture
    window: Window
    tables: Mapping[str, Table]

    def __getattr__(self, name: str) -> Table:
        try:
            return self.tables[name]
        except KeyError:
            raise AttributeError(f"an analysis has no table {name!r}") from None

    @property
    def ok(self) -> bool:
        """Whether every check holds."""
        return bool(self.tables["checks"]["ok"].all())


def analyze(
    trace: Trace,
    *,
    between: tuple[int | None, int | None] | None = None,
    processes: Sequence[int] = (),
    devices: Sequence[int] = (),
) -> Analysis:
    """Compute everything that `kernelscope analyze` reports.

    Parameters
    ----------
    trace : Trace
        What :func:`kernelscope.read` returned.
    between : pair of int or None, optional
        Window in ns of trace time; None leaves an end open.
    processes, devices : sequence of int
        Operating-system ids and CUDA ordinals to look at; empty for all.

    Raises
    ------
    SelectionError
        If the window, a process or a device does not exist.
    """
    chosen = select(trace, processes, devices)
    window = whole(chosen) if between is None else window_between(chosen, between)
    tables = {name: metric(chosen, window) for name, metric in METRICS.items()}
    tables["health"] = health(chosen)
    return Analysis(trace.capture, window, tables)
