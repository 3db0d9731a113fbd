"""How long GPUs communicate, how much of that compute hides, and how fast the data moves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.attribution import Attribution
from kernelscope.metrics.collective_ranges import MISSING
from kernelscope.metrics.communication_calls import (
    NAME,
    NVTX,
    PAYLOAD,
    REASONS,
    TEXT,
    USER,
    Calls,
    communication_calls,
)
from kernelscope.metrics.communication_names import KINDS
from kernelscope.metrics.communication_results import COMMUNICATION, COMMUNICATION_BY_DEVICE
from kernelscope.metrics.device_time import DeviceTime, measure
from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.intervals import (
    Int64s,
    Pieces,
    clip,
    covered_before,
    sums_by,
    union_by_group,
    unite,
)
from kernelscope.metrics.window import Window, starts_inside
from kernelscope.trace import Array, Categorical, ColumnData, Table, Trace, absent, widened

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CommunicationTime:
    """Communication kernels and what the devices did beside them, found once for both tables.

    Attributes
    ----------
    trace : Trace
        Whose kernels they are.
    calls : Calls
        What they do.
    measured : DeviceTime
        When each device computed, in the window that the figures cover.
    """

    trace: Trace
    calls: Calls
    measured: DeviceTime


def measure_communication(  # noqa: PLR0913 - what other tables found already
    trace: Trace,
    window: Window | None = None,
    *,
    measured: DeviceTime | None = None,
    attribution: Attribution | None = None,
    ranks: int | None = None,
    communication: Sequence[str] = (),
) -> CommunicationTime:
    """Find the communication kernels of a trace and what hides them.

    Parameters
    ----------
    trace : Trace
        Its kernels, calls and ranges are read.
    window : Window, optional
        The whole trace by default; that of `measured` where it is given.
    measured : DeviceTime, optional
        What :func:`kernelscope.metrics.device_time.measure` found, of this trace or of one that
        holds more processes: a kernel of any process hides communication on its GPU. Its user
        patterns count.
    attribution : Attribution, optional
        Of `trace`, where it was made before.
    ranks : int, optional
        Ranks of every communicator of which the trace does not tell.
    communication : sequence of str
        The user's patterns, where nothing was measured before.

    Raises
    ------
    SelectionError
        If a pattern cannot be read.
    """
    time = measured or measure(trace, window, communication=communication)
    calls = communication_calls(
        trace, attribution=attribution, ranks=ranks, communication=time.communication
    )
    return CommunicationTime(trace, calls, time)


def communication(
    trace: Trace, window: Window | None = None, *, found: CommunicationTime | None = None
) -> Table:
    """How long do GPUs communicate, and how much of that does compute not hide?

    A row is one kind of collective of one library on one device of one process. What runs at
    once counts once in a row; rows of two kinds that ran at once both count it, and
    :func:`communication_by_device` counts it once.

    Parameters
    ----------
    trace, window
        As :func:`measure_communication` takes them.
    found : CommunicationTime, optional
        What it found, where both tables are made of it.
    """
    time = found or measure_communication(trace, window)
    calls, kernels = time.calls, time.trace.kernels
    if not len(calls.rows):
        return Table.empty(COMMUNICATION)
    lanes = [widened(kernels[name][calls.rows]) for name in ("process_id", "device_id")]
    codes, keys = grouped([*lanes, calls.library, calls.kind])
    count = len(keys[0])
    columns: dict[str, ColumnData] = {
        "process_id": keys[0],
        "device_id": keys[1],
        "library": Categorical(keys[2].astype(np.int32), calls.libraries),
        "kind": Categorical(keys[3].astype(np.int32), KINDS),
        **_times(time, codes, (keys[0], keys[1])),
        **_volumes(time, codes, count),
        "lower_bound": np.ones(count, dtype=np.bool_),
    }
    table = Table.make(COMMUNICATION, columns)
    return _by_total(table)


def communication_by_device(
    trace: Trace,
    window: Window | None = None,
    *,
    found: CommunicationTime | None = None,
    by_kind: Table | None = None,
) -> Table:
    """How much communication does each GPU of a process not hide behind compute?

    Parameters
    ----------
    trace, window, found
        As :func:`communication` takes them.
    by_kind : Table, optional
        What :func:`communication` returned: where each device of a process has but one kind,
        these are its figures.
    """
    time = found or measure_communication(trace, window)
    kernels, rows = time.trace.kernels, time.calls.rows
    if not len(rows):
        return Table.empty(COMMUNICATION_BY_DEVICE)
    codes, keys = grouped([widened(kernels[name][rows]) for name in ("process_id", "device_id")])
    lanes = set() if by_kind is None else set(_lanes(by_kind))
    if by_kind is not None and len(lanes) == len(by_kind) == len(keys[0]):
        names = COMMUNICATION_BY_DEVICE.names
        return Table.make(COMMUNICATION_BY_DEVICE, {n: by_kind.columns[n] for n in names})
    columns: dict[str, ColumnData] = {
        "process_id": keys[0],
        "device_id": keys[1],
        **_times(time, codes, (keys[0], keys[1])),
    }
    return _by_total(Table.make(COMMUNICATION_BY_DEVICE, columns))


def _lanes(table: Table) -> Iterable[tuple[int, int]]:
    return zip(table["process_id"].tolist(), table["device_id"].tolist(), strict=True)


def _by_total(table: Table) -> Table:
    """Sort by total time, then by device, process and name; leave out what is not in the window."""
    kept = np.flatnonzero((table["calls"] > 0) | (table["total_ns"] > 0))
    keys = [table[name][kept] for name in ("process_id", "device_id")]
    if "kind" in table.schema.names:
        keys = [table[name][kept] for name in ("kind", "library")] + keys
    return table.take(kept[np.lexsort((*keys, -table["total_ns"][kept]))])


def _times(
    time: CommunicationTime, codes: Array, lanes: tuple[Array, Array]
) -> dict[str, ColumnData]:
    """Return the columns of times of each group of calls, the groups' lanes being given."""
    kernels, rows, window = time.trace.kernels, time.calls.rows, time.measured.window
    count = len(lanes[0])
    start, end, kept = clip(
        kernels["start_ns"][rows], kernels["end_ns"][rows], window.start_ns, window.end_ns
    )
    inside = counted(time)
    codes_in = codes if kept is None else codes[kept]
    begin, stop, bounds = union_by_group(start, end, codes_in, count)
    group = np.repeat(np.arange(count), np.diff(bounds))
    busy = sums_by(group, stop - begin, count)
    hidden, hidden_with_graphs = busy.copy(), busy.copy()
    for device, members in _devices(time.measured, lanes).items():
        account = time.measured.devices[device]
        here = np.isin(group, members)
        times = begin[here], stop[here], group[here]
        hidden[members] = _overlapped(account.compute, *times, count)[members]
        either = unite(account.compute, account.graphs)
        hidden_with_graphs[members] = (
            hidden[members]
            if either is account.compute
            else _overlapped(either, *times, count)[members]
        )
    beside: dict[str, ColumnData] = {
        "exposed_ns": busy - hidden,
        "exposed_without_graphs_ns": busy - hidden_with_graphs,
        "overlapped_ns": hidden,
    }
    if time.measured.serialised:
        beside = {name: absent(COMMUNICATION.column(name), count) for name in beside}
    return {
        "calls": np.bincount(codes[inside], minlength=count).astype(np.int64),
        "total_ns": sums_by(codes_in, end - start, count),
        "busy_ns": busy,
        **beside,
    }


def counted(time: CommunicationTime) -> Bools:
    """Return which calls start in the window."""
    kernels, rows = time.trace.kernels, time.calls.rows
    return starts_inside(
        {name: kernels[name][rows] for name in ("start_ns", "end_ns")}, time.measured.window
    )


def _devices(measured: DeviceTime, lanes: tuple[Array, Array]) -> dict[int, list[int]]:
    """Return the groups on each physical device."""
    found: dict[int, list[int]] = {}
    identity = measured.identity
    place = dict(zip(identity.lanes, identity.index, strict=True))
    for i, (process, device) in enumerate(zip(*(each.tolist() for each in lanes), strict=True)):
        lane = (None if process == MISSING else process, device)
        found.setdefault(place[lane], []).append(i)
    return found


def _overlapped(
    pieces: Pieces, begin: Int64s, stop: Int64s, group: npt.NDArray[np.intp], count: int
) -> Int64s:
    """Return how much of the times of each group lies in the pieces."""
    before = covered_before(pieces, np.concatenate((begin, stop)))
    return sums_by(group, before[len(begin) :] - before[: len(begin)], count)


def _volumes(time: CommunicationTime, codes: Array, count: int) -> dict[str, ColumnData]:
    """Return bytes, ranks and rates of the calls that start in the window.

    A group in which any size is not known has no sum: absent is not zero.
    """
    calls, kernels = time.calls, time.trace.kernels
    inside = counted(time)
    rows, codes = calls.rows[inside], codes[inside]
    size = calls.bytes[inside]
    known = np.where(size == MISSING, 0, size)
    lacking = (np.bincount(codes[size == MISSING], minlength=count) > 0) | (
        np.bincount(codes, minlength=count) == 0
    )
    total = sums_by(codes, known, count)
    duration = sums_by(codes, kernels["end_ns"][rows] - kernels["start_ns"][rows], count)
    on_bus = np.bincount(codes, weights=known * calls.bus_factor()[inside], minlength=count)
    rates: list[Floats] = []
    for moved in (total.astype(np.float64), on_bus):
        rate = np.full(count, np.nan)
        usable = ~lacking & (duration > 0)
        rate[usable] = moved[usable] / duration[usable] * 1e9
        rates.append(rate)
    return {
        "kind_source": _sources(
            codes, calls.kind_source[inside], count, {NAME: "name", NVTX: "nvtx"}
        ),
        "bytes": np.where(lacking, MISSING, total),
        "bytes_source": _sources(
            codes,
            calls.bytes_source[inside],
            count,
            {PAYLOAD: "nvtx_payload", TEXT: "nvtx_text"},
            none=lacking,
        ),
        "bytes_missing_because": _reasons(codes, calls.reason[inside], count),
        "ranks": _shared(codes, calls.ranks[inside], count),
        "ranks_source": _sources(
            codes, calls.ranks_source[inside], count, {PAYLOAD: "nvtx_payload", USER: "user"}
        ),
        "algorithm_bytes_per_s": rates[0],
        "bus_bytes_per_s": rates[1],
    }


def _shared(codes: Array, values: Int64s, count: int) -> Int64s:
    """Return the value that all calls of each group share; missing where they differ."""
    low = np.full(count, np.iinfo(np.int64).max)
    high = np.full(count, MISSING)
    np.minimum.at(low, codes, values)
    np.maximum.at(high, codes, values)
    return np.where(low == high, low, MISSING)


def _sources(
    codes: Array,
    source: npt.NDArray[np.int8],
    count: int,
    names: dict[int, str],
    none: Bools | None = None,
) -> Categorical:
    """Return where the figures of each group come from; missing where there is none."""
    bits = np.zeros(count, dtype=np.int64)
    np.bitwise_or.at(bits, codes, source.astype(np.int64))
    if none is not None:
        bits[none] = 0
    texts = [
        " and ".join(name for bit, name in names.items() if value & bit) or None
        for value in bits.tolist()
    ]
    return Categorical.of(texts)


def _reasons(codes: Array, reason: npt.NDArray[np.int8], count: int) -> Categorical:
    """Return why the size of most calls of each group is not known, of those that lack one."""
    each = np.bincount(
        codes * len(REASONS) + reason.astype(np.int64), minlength=count * len(REASONS)
    ).reshape(count, len(REASONS))
    each[:, 0] = 0
    most = each.argmax(axis=1)
    return Categorical.of([REASONS[code] or None for code in most.tolist()])
