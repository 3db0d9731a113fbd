"""CUDA runtime and driver calls by name."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import results
from kernelscope.metrics.aggregate import by_total, durations_by_group
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Categorical, ColumnData, Table, Trace


def rows_without_wrappers(api_calls: Table) -> npt.NDArray[np.intp] | None:
    """Return the rows of the CUDA calls proper; None where they are all.

    Exports with call chains hold a wrapper around each.
    """
    kinds = api_calls.categories("kind")
    if "wrapper" not in kinds:
        return None
    return np.flatnonzero(api_calls["kind"] != kinds.index("wrapper"))


def calls_without_wrappers(api_calls: Table) -> Table:
    """Return the CUDA calls proper."""
    own = rows_without_wrappers(api_calls)
    return api_calls if own is None else api_calls.take(own)


def api_calls(trace: Trace, window: Window | None = None) -> Table:
    """Where do the host's CUDA calls take time?

    Parameters
    ----------
    trace : Trace
        The trace.
    window : Window, optional
        Where to look; by default all of it.

    Returns
    -------
    Table
        Under ``results.API_CALLS``, longest total first. Runtime and driver calls stand side by
        side, as recorded; call-chain wrappers are not summed beside what they wrap. Tracing
        inflates these times.
    """
    window = window or whole(trace)
    events = calls_without_wrappers(trace.api_calls)
    names = events.categories("name")
    columns: dict[str, ColumnData] = {
        "name": Categorical(np.arange(len(names), dtype=np.int32), names),
        **durations_by_group(events, window, events["name"], len(names), "calls"),
    }
    return by_total(results.API_CALLS, columns, "calls")
