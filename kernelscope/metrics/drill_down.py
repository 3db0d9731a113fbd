"""What lies beneath an analysis: a row per launch, stretch of idle time, step or range.

These tables are as long as the trace, so no report holds them: they are made when a query names
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kernelscope.metrics import idle_results, launch_results, overlap_results
from kernelscope.metrics.analysis_parts import Shared, explained_idle, shared, used_devices
from kernelscope.metrics.idle import idle_pieces
from kernelscope.metrics.launch_calls import launch_calls
from kernelscope.metrics.launch_times import launch_times
from kernelscope.metrics.overlap import beside
from kernelscope.metrics.overlap_parts import overlap_by_range
from kernelscope.metrics.queue_depth import queue_depth_steps
from kernelscope.metrics.window import Window
from kernelscope.schema import TableSchema
from kernelscope.trace import ColumnData, Table, Trace, missing_value


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Asked:
    """What is asked about.

    Attributes
    ----------
    everything, chosen : Trace
        The whole trace, and the chosen processes and devices of it.
    window : Window
        Where to look.
    patterns : sequence of str
        The user's patterns of communication kernels.
    """

    everything: Trace
    chosen: Trace
    window: Window
    patterns: Sequence[str] = ()

    @property
    def shared(self) -> Shared:
        """What an analysis finds once for several tables."""
        launches = launch_times(self.chosen)
        return shared(self.everything, self.chosen, self.window, launches, self.patterns)


def _launch_calls(asked: Asked) -> Table:
    return launch_calls(asked.chosen, asked.window)


def _queue_depth_steps(asked: Asked) -> Table:
    return queue_depth_steps(asked.chosen, asked.window)


def _idle_pieces(asked: Asked) -> Table:
    known = asked.shared
    table = idle_pieces(explained_idle(known), asked.window)
    if not known.partial:
        return table
    used = np.array(used_devices(known), dtype=np.int64)
    table = table.take(np.isin(table["device"], used))
    columns: dict[str, ColumnData] = {
        **table.columns,
        "device": np.searchsorted(used, table["device"]),
        # Rows of the whole trace are not those of the chosen one.
        "ending_row": np.full(len(table), missing_value(np.dtype(np.int64))),
    }
    return Table.make(table.schema, columns)


def _overlap_by(asked: Asked, by: Literal["path", "name"]) -> Table:
    found = beside(asked.everything, asked.chosen, asked.window)
    return overlap_by_range(asked.chosen, asked.window, by=by, found=found)


DRILL_DOWN: Mapping[str, tuple[TableSchema, Callable[[Asked], Table]]] = {
    schema.name: (schema, make)
    for schema, make in (
        (launch_results.LAUNCH_CALLS, _launch_calls),
        (launch_results.QUEUE_DEPTH_STEPS, _queue_depth_steps),
        (idle_results.IDLE_PIECES, _idle_pieces),
        (overlap_results.OVERLAP_BY_PATH, lambda asked: _overlap_by(asked, "path")),
        (overlap_results.OVERLAP_BY_NAME, lambda asked: _overlap_by(asked, "name")),
    )
}
"""Name → the table, and the function that makes it; a new one is a function and a line here."""
