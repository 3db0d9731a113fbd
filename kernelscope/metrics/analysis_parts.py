"""The tables of an analysis, made in groups that share what is costly to find out.

A group is a function that returns its tables by name. What several groups need (which call
launched what, the devices' accounts, when the host waited) is found once and stands in
:class:`Shared`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelscope.metrics import idle as idle_time
from kernelscope.metrics import sample_results, utilization_results
from kernelscope.metrics.attribution import Attribution
from kernelscope.metrics.communication import (
    communication,
    communication_by_device,
    measure_communication,
)
from kernelscope.metrics.communication_health import communication_findings
from kernelscope.metrics.device_gaps import gaps
from kernelscope.metrics.device_identity import Lane, device_ordinals, identify
from kernelscope.metrics.device_peaks import find_peaks
from kernelscope.metrics.device_streams import streams
from kernelscope.metrics.device_time import DeviceTime, checks, device_processes, measure
from kernelscope.metrics.device_time import devices as devices_
from kernelscope.metrics.findings import findings
from kernelscope.metrics.graph_kernels import graph_kernels
from kernelscope.metrics.health import Finding
from kernelscope.metrics.host_threads import cpu, host_threads
from kernelscope.metrics.idle import IdleTime
from kernelscope.metrics.iterations import Iterations
from kernelscope.metrics.launch_calls import find_launch_calls
from kernelscope.metrics.launch_latency import launch_figures
from kernelscope.metrics.launch_stretches import launch_stretches
from kernelscope.metrics.launch_times import LaunchTimes, launch_times
from kernelscope.metrics.overlap import HostAndDevices, host_and_devices, overlap
from kernelscope.metrics.overlap_parts import overlap_by_iteration
from kernelscope.metrics.queue_depth import queue_depth
from kernelscope.metrics.range_paths import folded_paths, range_paths
from kernelscope.metrics.ranges import measure as measure_ranges
from kernelscope.metrics.ranges import ranges, ranges_by_name, unattributed
from kernelscope.metrics.savable import Seen, basis_of
from kernelscope.metrics.transfers import copy_calls, migrations, transfers
from kernelscope.metrics.waiting import Waiting, waiting
from kernelscope.metrics.window import Window, covers, whole
from kernelscope.metrics.work_results import COUNTER_COVERAGE, WORK, WORK_BY_SHAPE
from kernelscope.trace import Table, Trace, distinct, stacked

if TYPE_CHECKING:
    from kernelscope.parsers.counter_set import CounterSet

Tables = dict[str, Table]

MAX_RAW_PATHS = 100_000
"""Digits in range names are folded where they would make more paths than this."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Shared:
    """What is found once, for the tables of several groups.

    Attributes
    ----------
    trace, chosen : Trace
        Everything that was recorded, and the chosen processes and devices of it. A device's
        account covers every recorded process, whichever were chosen: what another process does
        on a GPU is not idle time.
    window : Window
        The interval that every figure speaks of.
    launches, chosen_launches : LaunchTimes
        Which call launched what in either.
    waits : Waiting
        When threads of `trace` waited inside CUDA calls.
    measured : DeviceTime
        The accounts of all devices in the window.
    chosen_lanes : frozenset of Lane
        The pairs of process and device that `chosen` uses.
    """

    trace: Trace
    chosen: Trace
    window: Window
    launches: LaunchTimes
    chosen_launches: LaunchTimes
    waits: Waiting
    measured: DeviceTime
    chosen_lanes: frozenset[Lane]

    @property
    def partial(self) -> bool:
        """Whether only some processes or devices were chosen."""
        return self.chosen is not self.trace


def shared(
    trace: Trace,
    chosen: Trace,
    window: Window,
    chosen_launches: LaunchTimes,
    patterns: Sequence[str] = (),
) -> Shared:
    """Find out what several groups of tables need.

    Parameters
    ----------
    trace, chosen, window, chosen_launches
        As in :class:`Shared`.
    patterns : sequence of str
        The user's patterns of communication kernels.
    """
    launches = chosen_launches if chosen is trace else launch_times(trace)
    measured = measure(trace, window, communication=patterns)
    waits = waiting(trace, launches)
    identity = measured.identity if chosen is trace else identify(chosen)
    lanes = frozenset(identity.lanes)
    return Shared(trace, chosen, window, launches, chosen_launches, waits, measured, lanes)


def range_tables(
    trace: Trace, window: Window, attribution: Attribution
) -> tuple[Tables, list[Finding]]:
    """Return what ranges took, and a note where raw paths are more than anybody can use."""
    common: dict[str, Any] = {"attribution": attribution}
    paths, folded = None, False
    if len(trace.ranges):
        nesting = attribution.enclosed.nesting
        paths = range_paths(trace.ranges, nesting)
        folded = len(paths) > MAX_RAW_PATHS
        paths = folded_paths(paths) if folded else paths
        common["measured"] = measure_ranges(trace, window, attribution=attribution)
    tables = {
        "ranges": ranges(trace, window, paths=paths, folded=folded, **common),
        "ranges_by_name": ranges_by_name(trace, window, folded=folded, **common),
        "unattributed": unattributed(trace, window, attribution=attribution),
        "graph_kernels": graph_kernels(trace, window, attribution=attribution),
    }
    return tables, [_folded_ranges()] if folded else []


def sample_tables(
    known: Shared, attribution: Attribution, steps: Iterations
) -> tuple[Tables, list[Finding]]:
    """Return what the GPUs' own counters showed, where they were sampled."""
    if not known.trace.recorded("gpu_samples") or not len(known.trace.gpu_samples):
        return {each.name: Table.empty(each) for each in sample_results.TABLES}, []
    from kernelscope.metrics import gpu_samples  # noqa: PLC0415 - few traces have samples
    from kernelscope.metrics.sample_ranges import RangesSeen  # noqa: PLC0415

    seen = RangesSeen.of(attribution) if len(known.chosen.ranges) else None
    return gpu_samples.sample_tables(
        known.trace,
        known.window,
        known.measured.identity,
        steps.rows,
        seen=seen,
        lanes=identify(known.chosen).lanes if known.partial else None,
    )


def _folded_ranges() -> Finding:
    return Finding(
        "ranges_folded",
        "info",
        1,
        f"There are more than {MAX_RAW_PATHS:,} distinct range paths: digits in their names are "
        "folded ('step 12' is 'step #'). kernelscope ranges FILE --raw keeps them.",
    )


def communication_tables(
    known: Shared, attribution: Attribution, ranks: int | None
) -> tuple[Tables, list[Finding]]:
    """Return how GPUs communicated, and what could not be told of it."""
    found = measure_communication(
        known.chosen,
        measured=known.measured,
        attribution=attribution,
        ranks=ranks,
        communication=known.measured.communication,
    )
    by_kind = communication(known.chosen, found=found)
    by_device = communication_by_device(known.chosen, found=found, by_kind=by_kind)
    tables = {"communication": by_kind, "communication_by_device": by_device}
    return tables, communication_findings(found)


def counted_tables(
    trace: Trace, window: Window, launches: LaunchTimes, counters: CounterSet | None
) -> tuple[Tables, list[Finding]]:
    """Return the work that was counted, here or in another run, and what there is to doubt."""
    if counters is None and not len(trace.counters):
        return {
            each.name: Table.empty(each) for each in (WORK, WORK_BY_SHAPE, COUNTER_COVERAGE)
        }, []
    from kernelscope.metrics.counter_join import join_counters  # noqa: PLC0415 - few have counters
    from kernelscope.parsers.nvprof_runs import of_trace  # noqa: PLC0415

    same_run = counters is None
    counted = counters or of_trace(trace, trace.capture.file)
    joined = join_counters(trace, window, counted, launches=launches, same_run=same_run)
    tables = {
        "work": joined.work,
        "work_by_shape": joined.work_by_shape,
        "counter_coverage": joined.coverage,
    }
    return tables, list(joined.findings)


def launch_tables(known: Shared) -> Tables:
    """Return how launches reached the devices, and whom copies held up."""
    trace, window, measured = known.chosen, known.window, known.measured
    calls = find_launch_calls(trace, launches=known.chosen_launches)
    tables = launch_figures(trace, window, calls)
    tables["queue_depth"] = queue_depth(trace, window, calls=calls)
    del calls  # as large as the trace
    copying = copy_calls(trace, known.chosen_launches)
    tables["transfers"] = transfers(trace, window, measured=measured, calls=copying)
    tables["migrations"] = migrations(trace, window, measured=measured)
    return tables


def host_tables(known: Shared, steps: Iterations) -> Tables:
    """Return what the host did while the devices worked, and while they did not."""
    both = host_and_devices(
        known.trace,
        known.window,
        measured=known.measured,
        launches=known.launches,
        waits=known.waits,
    )
    return {
        "overlap": overlap(known.trace, known.window, found=both),
        "overlap_by_iteration": overlap_by_iteration(
            known.trace, steps, found=_around(known, steps) or both
        ),
        "host_threads": host_threads(known.trace, known.window, host=both.host),
        "cpu": cpu(known.trace, known.window),
    }


def _around(known: Shared, steps: Iterations) -> HostAndDevices | None:
    """Return what host and devices did, if the iterations reach beyond the window.

    An iteration's figures are of its whole period, as far as there is CUDA activity at all: those
    of the device, of idle time, and of the overlap. None where all of that lies in the window.
    """
    start = steps.rows["start_ns"]
    if not len(start):
        return None
    everything, window = whole(known.trace), known.window
    low = max(int(start.min()), everything.start_ns)
    high = min(int((start + steps.rows["period_ns"]).max()), everything.end_ns)
    reach = Window(min(low, window.start_ns), max(high, window.end_ns), "whole iterations")
    if covers(window, reach):
        return None
    return host_and_devices(known.trace, reach, launches=known.launches, waits=known.waits)


def explained_idle(known: Shared) -> IdleTime:
    """Return why each device stood still, over the whole trace."""
    return idle_time.explain(
        known.trace,
        known.window,
        identity=known.measured.identity,
        launches=known.launches,
        waits=known.waits,
        communication=known.measured.communication,
    )


def stretch_table(known: Shared, explained: IdleTime) -> Table:
    """Return when devices waited for launches longer than they worked."""
    return launch_stretches(
        known.trace,
        known.window,
        launches=known.launches,
        measured=known.measured,
        pauses=explained.gaps,
    )


def idle_tables(known: Shared, explained: IdleTime, steps: Iterations) -> Tables:
    """Return why the devices stood still, in all and in each iteration."""
    rows = steps.rows
    start, end = rows["start_ns"], rows["start_ns"] + rows["period_ns"]
    by_iteration = idle_time.idle_by_iteration(explained, start, end)
    columns = {**by_iteration.columns, "iteration": rows["index"][by_iteration["iteration"]]}
    return {
        "idle": idle_time.idle(explained, known.window),
        "gap_spectrum": idle_time.gap_spectrum(explained, known.window),
        "idle_by_iteration": Table.make(by_iteration.schema, columns),
    }


def device_tables(known: Shared) -> Tables:
    """Return where the time of the devices went."""
    trace, window, measured = known.trace, known.window, known.measured
    return {
        "devices": devices_(trace, window, measured=measured),
        "device_ordinals": device_ordinals(trace, measured.identity),
        "device_processes": device_processes(trace, window, measured=measured),
        "streams": streams(trace, window, identity=measured.identity),
    }


def peak_table(known: Shared, gpu: str | None, clock_hz: int | None) -> tuple[Table, list[Finding]]:
    """Return what the devices can do at most, and what is doubtful of that."""
    return find_peaks(known.trace, known.measured.identity, gpu=gpu, clock_hz=clock_hz)


def gap_table(known: Shared) -> Table:
    """Return when the devices stood still."""
    return gaps(known.trace, known.window, measured=known.measured)


def device_checks(known: Shared, explained: IdleTime, tables: Tables) -> Table:
    """Return whether the parts of the chosen devices' time add up."""
    lanes = known.chosen_lanes if known.partial else None
    causes = idle_time.checks(
        explained, known.measured, causes=tables["idle"], spectrum=tables["gap_spectrum"]
    )
    return stacked(checks(known.measured, lanes), causes)


def finding_table(known: Shared, explained: IdleTime, steps: Iterations, tables: Tables) -> Table:
    """Return what should be mended first."""
    waits = known.waits
    if known.partial:  # of the chosen calls; the queue holds what they launch on any device
        work = {name: known.trace.tables[name] for name in ("kernels", "copies", "graphs")}
        waits = waiting(known.chosen.with_tables(**work))
    seen = Seen(
        trace=known.chosen,
        launches=known.chosen_launches,
        everything=known.trace,
        every_call=known.launches.api_calls,
        window=known.window,
        measured=known.measured,
        explained=explained,
        chosen=used_devices(known),
        waits=waits,
        tables=tables,
        summary=steps.summary,
        basis=basis_of(tables["iterations"], known.window),
    )
    return findings(seen)


def utilization_tables(
    known: Shared, explained: IdleTime, steps: Iterations, tables: Tables
) -> Tables:
    """Return how much of the peaks kernels use, and what bounds them, where work was counted."""
    if not len(tables["work_by_shape"]):
        return {each.name: Table.empty(each) for each in utilization_results.TABLES}
    from kernelscope.metrics.utilization_parts import utilization  # noqa: PLC0415 - few have counters

    return utilization(
        known.trace,
        known.window,
        tables,
        measured=known.measured,
        explained=explained,
        devices=used_devices(known),
        chosen=known.chosen_lanes if known.partial else None,
        iterations=steps.rows,
    )


def used_devices(known: Shared) -> tuple[int, ...]:
    """Return the numbers of the chosen devices."""
    identity = known.measured.identity
    if not known.partial:
        return tuple(range(len(known.measured.devices)))
    lanes = zip(identity.lanes, identity.index, strict=True)
    return tuple(sorted({i for lane, i in lanes if lane in known.chosen_lanes}))


_BY_LANE = ("device_ordinals", "device_processes", "streams", "overlap", "overlap_by_iteration")
_BY_DEVICE = (
    ("device_ordinals", "index"),
    ("devices", "index"),
    ("gaps", "device"),
    ("idle", "device"),
    ("gap_spectrum", "device"),
    ("idle_by_iteration", "device"),
    ("launch_stretches", "device"),
    ("peaks", "device"),
    ("device_utilization", "device"),
    ("utilization_by_iteration", "device"),
    *((each.name, "device") for each in sample_results.TABLES),
)


def of_chosen(known: Shared, tables: Tables) -> Tables:
    """Keep the rows of the chosen processes, their ordinals and their GPUs, these renumbered."""
    if not known.partial:
        return tables
    lanes = known.chosen_lanes
    kept = {
        name: tables[name].take(
            np.array([lane in lanes for lane in _lanes(tables[name])], dtype=np.bool_)
        )
        for name in _BY_LANE
    }
    used = distinct(kept["device_ordinals"]["index"])
    place = np.full(len(tables["devices"]) + 1, -1, dtype=np.int64)
    place[used] = np.arange(len(used))
    for name, column in _BY_DEVICE:
        table = kept.get(name, tables[name])
        table = table.take(np.isin(table[column], used))
        columns = {**table.columns, column: place[table[column]]}
        kept[name] = Table.make(table.schema, columns)
    recorded = [
        distinct(each["process_id"]) for each in (known.chosen.api_calls, known.chosen.on_core)
    ]
    threads = tables["host_threads"]
    mine = np.isin(threads["process_id"], np.concatenate(recorded))
    return tables | kept | {"host_threads": threads.take(mine)}


def _lanes(table: Table) -> list[Lane]:
    return list(zip(table.values("process_id"), table.values("device_id"), strict=True))
