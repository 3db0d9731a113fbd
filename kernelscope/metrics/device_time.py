"""Where the time of each device goes: a partition of the window, exact to the nanosecond."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kernelscope.metrics import results
from kernelscope.metrics.device_activity import Activity, Mark, by_lane, together
from kernelscope.metrics.device_identity import Identity, Lane, identify, integers, texts
from kernelscope.metrics.intervals import (
    Pieces,
    concurrency,
    gaps,
    overlap,
    subtract,
    total,
    unite,
)
from kernelscope.metrics.sm_fill import Weighted
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import ColumnData, Table, Trace


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Account:
    """How one device spent the window.

    Attributes
    ----------
    window_ns, kernel_ns, compute_ns, leading_ns, trailing_ns : int
        As in the result table.
    busy : Pieces
        When anything was on the device.
    kernels : Pieces
        When a kernel or a graph traced as one unit was.
    copies : Pieces
        When a copy or a migration was, those of peers included on a device's account.
    concurrency : tuple of int
        Time with one, two, and three or more kernels.
    partition : tuple of int
        Time of each class of ``PARTITION_CLASSES``.
    fill : (float, int)
        Σ fill · ns and Σ ns of the executions whose fill is known.
    compute, graphs : Pieces
        When compute kernels ran, and graphs traced as one unit.
    """

    window_ns: int
    kernel_ns: int
    compute_ns: int
    leading_ns: int
    trailing_ns: int
    busy: Pieces
    kernels: Pieces
    copies: Pieces
    concurrency: tuple[int, int, int]
    partition: tuple[int, ...]
    fill: Weighted
    compute: Pieces
    graphs: Pieces


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DeviceTime:
    """The accounts of every device, measured once for all tables that show them.

    Attributes
    ----------
    window : Window
        The interval that they cover.
    identity : Identity
        Lanes, and the devices that they share.
    lanes : tuple of Account
        One for each lane of `identity`.
    devices : tuple of Account
        One for each physical device.
    other_process_ns : tuple of int
        For each lane, time in which only other processes were on its device.
    communication : tuple of str
        The user's patterns of communication kernels, beside the list.
    serialised : bool
        Whether the profiler ran the kernels one by one: what depends on when they ran is then
        missing from every table.
    """

    window: Window
    identity: Identity
    lanes: tuple[Account, ...]
    devices: tuple[Account, ...]
    other_process_ns: tuple[int, ...]
    communication: tuple[str, ...] = ()
    serialised: bool = False


def measure(
    trace: Trace, window: Window | None = None, *, communication: Sequence[str] = ()
) -> DeviceTime:
    """Account for the time of every device that the trace used.

    Parameters
    ----------
    trace : Trace
        Its kernels, copies and devices are read.
    window : Window, optional
        The whole trace by default.
    communication : sequence of str
        Further communication kernels, as
        :func:`kernelscope.metrics.communication_names.user_pattern` takes them.
    """
    window = window or whole(trace)
    identity = identify(trace)
    activities, marks = by_lane(trace, window, identity, communication)
    lanes = [_account(each, window) for each in activities]
    devices: list[Account] = []
    others = [0] * len(lanes)
    for device in range(len(identity.physical_ids)):
        members = [i for i, of in enumerate(identity.index) if of == device]
        marked = [mark for mark in marks if mark.device == device]
        if len(members) == 1 and not marked:  # nobody else: the process's account is the device's
            devices.append(lanes[members[0]])
            continue
        merged = together([activities[i] for i in members], [mark.pieces for mark in marked])
        devices.append(_account(merged, window))
        for i in members:
            own = _own_ns(identity, lanes, members, marked, identity.lanes[i][0])
            others[i] = total(devices[-1].busy) - own
    return DeviceTime(
        window,
        identity,
        tuple(lanes),
        tuple(devices),
        tuple(others),
        tuple(communication),
        serialised=trace.capture.serialised is not None,
    )


def devices(
    trace: Trace, window: Window | None = None, *, measured: DeviceTime | None = None
) -> Table:
    """Where does the time of each GPU go?

    A row covers all recorded processes of one physical GPU. A peer copy occupies both its
    devices. A device that did nothing inside the window is idle throughout: all of it is
    leading, nothing trailing, and there is no gap. Of a serialised capture only the kernels' own
    time and fill are given.

    Parameters
    ----------
    trace : Trace
        Its kernels, copies and devices are read.
    window : Window, optional
        The whole trace by default.
    measured : DeviceTime, optional
        What :func:`measure` found, where several tables are made of it.
    """
    time = measured or measure(trace, window)
    names = time.identity.names()
    first = [time.identity.index.index(i) for i in range(len(time.devices))]
    return Table.make(
        results.DEVICES,
        {
            "index": np.arange(len(time.devices), dtype=np.int64),
            "physical_id": texts(time.identity.physical_ids),
            "name": texts(names[i] for i in first),
            **_columns(time.devices, time.serialised),
        },
    )


def device_processes(
    trace: Trace, window: Window | None = None, *, measured: DeviceTime | None = None
) -> Table:
    """Where does the time of each GPU go, as one process sees it?

    Contexts and streams of one process on one device are one row. What peer copies of other
    devices do here shows in :func:`devices` alone.

    Parameters
    ----------
    trace, window, measured
        As :func:`devices` takes them.
    """
    time = measured or measure(trace, window)
    return Table.make(
        results.DEVICE_PROCESSES,
        {
            "process_id": integers(lane[0] for lane in time.identity.lanes),
            "device_id": integers(lane[1] for lane in time.identity.lanes),
            "name": texts(time.identity.names()),
            "other_process_ns": integers(
                None if time.serialised else each for each in time.other_process_ns
            ),
            **_columns(time.lanes, time.serialised),
        },
    )


def partition(activity: Activity, kernels: Pieces, window_ns: int, busy_ns: int) -> tuple[int, ...]:
    """Split the window into the classes of device time; at each ns the first that holds.

    With C compute, M communication, G graphs, P copies and S memsets: C∧M, C∧(P∨S), C, G, M,
    P, S, idle. Each part is measured by itself, so that their sum is a check of the whole.

    Parameters
    ----------
    activity : Activity
        The classes as pieces.
    kernels : Pieces
        The union of compute, communication and graphs.
    window_ns, busy_ns : int
        Length of the window, and of the union of everything.
    """
    compute, graphs, talk = activity.compute, activity.graphs, activity.communication
    with_talk = overlap(compute, talk)
    moves = subtract(unite(activity.copies, activity.memsets), talk)
    with_moves = overlap(compute, moves)
    # Where there are no graphs the union is the compute pieces themselves, at no cost.
    silent = unite(compute, graphs)
    memsets = subtract(activity.memsets, activity.copies)
    return (
        with_talk,
        with_moves,
        total(compute) - with_talk - with_moves,
        total(graphs) - overlap(graphs, compute),
        total(talk) - (with_talk if silent is compute else overlap(talk, silent)),
        total(activity.copies) - overlap(activity.copies, kernels),
        total(memsets) - overlap(memsets, kernels),
        window_ns - busy_ns,
    )


def checks(time: DeviceTime, lanes: Collection[Lane] | None = None) -> Table:
    """Do the parts of each device's time add up to the window, and its gaps to the idle time?

    Parameters
    ----------
    time : DeviceTime
        What :func:`measure` found.
    lanes : collection of (process, ordinal), optional
        Whose devices to check; devices are numbered among those.
    """
    rows: list[tuple[str, int, int]] = []
    if time.serialised:  # there are no parts to sum up
        return Table.empty(results.CHECKS)
    for label, account in _labelled(time, time.identity.lanes if lanes is None else lanes):
        pauses = total(gaps(account.busy)) + account.leading_ns + account.trailing_ns
        idle = account.partition[-1]
        rows += [
            (f"{label}: parts = window", account.window_ns, sum(account.partition)),
            (f"{label}: leading + gaps + trailing = idle", idle, pauses),
        ]
    return Table.make(
        results.CHECKS,
        {
            "name": texts(row[0] for row in rows),
            "expected": integers(row[1] for row in rows),
            "actual": integers(row[2] for row in rows),
            "ok": np.array([row[1] == row[2] for row in rows], dtype=np.bool_),
        },
    )


def _labelled(time: DeviceTime, lanes: Collection[Lane]) -> Iterable[tuple[str, Account]]:
    pairs = list(zip(time.identity.lanes, time.identity.index, time.lanes, strict=True))
    used = sorted({index for lane, index, _ in pairs if lane in lanes})
    for number, index in enumerate(used):
        yield f"device {number}", time.devices[index]
    for (process, device), _, account in pairs:
        if (process, device) in lanes:
            who = "unknown" if process is None else process
            yield f"process {who} on its device {device}", account


def _account(activity: Activity, window: Window) -> Account:
    kernels = unite(activity.compute, activity.communication, activity.graphs)
    busy = unite(kernels, activity.copies, activity.memsets)
    starts, ends = busy
    some = len(starts) > 0
    length = window.duration_ns
    return Account(
        window_ns=length,
        kernel_ns=total(kernels),
        compute_ns=total(activity.compute),
        leading_ns=int(starts[0]) - window.start_ns if some else length,
        trailing_ns=window.end_ns - int(ends[-1]) if some else 0,
        busy=busy,
        kernels=kernels,
        copies=activity.copies,
        concurrency=concurrency(activity.starts, activity.ends),
        partition=partition(activity, kernels, length, total(busy)),
        fill=activity.fill,
        compute=activity.compute,
        graphs=activity.graphs,
    )


def _own_ns(
    identity: Identity,
    lanes: Sequence[Account],
    members: Sequence[int],
    marks: Sequence[Mark],
    process: int | None,
) -> int:
    """Return how long `process` itself was on a device, by whatever ordinal or peer copy."""
    own = [lanes[i].busy for i in members if identity.lanes[i][0] == process]
    return total(unite(*own, *(mark.pieces for mark in marks if mark.process_id == process)))


def _columns(accounts: Sequence[Account], serialised: bool) -> dict[str, ColumnData]:
    """Return the columns that devices and processes share."""
    columns = _of_a_run(accounts)
    if serialised:
        nothing = integers(None for _ in accounts)
        columns |= {name: nothing for name in columns if name not in _OF_KERNELS_ALONE}
    return columns


_OF_KERNELS_ALONE = ("window_ns", "kernel_ns", "compute_ns", "sm_fill")
"""What holds of kernels even where they ran one by one."""


def _of_a_run(accounts: Sequence[Account]) -> dict[str, ColumnData]:
    pauses = [gaps(account.busy) for account in accounts]
    columns: dict[str, ColumnData] = {
        "window_ns": integers(a.window_ns for a in accounts),
        "busy_ns": integers(a.window_ns - a.partition[-1] for a in accounts),
        "kernel_ns": integers(a.kernel_ns for a in accounts),
        "compute_ns": integers(a.compute_ns for a in accounts),
        "idle_ns": integers(a.partition[-1] for a in accounts),
        "leading_ns": integers(a.leading_ns for a in accounts),
        "trailing_ns": integers(a.trailing_ns for a in accounts),
        "gap_count": integers(len(start) for start, _ in pauses),
        "largest_gap_ns": integers(
            int((end - start).max()) if len(start) else None for start, end in pauses
        ),
        "sm_fill": np.array([a.fill[0] / a.fill[1] if a.fill[1] else np.nan for a in accounts]),
    }
    for i, name in enumerate(("one", "two", "three_or_more")):
        columns[f"concurrency.{name}_ns"] = integers(a.concurrency[i] for a in accounts)
    for i, name in enumerate(results.PARTITION_CLASSES):
        columns[f"partition.{name}_ns"] = integers(a.partition[i] for a in accounts)
    return columns
