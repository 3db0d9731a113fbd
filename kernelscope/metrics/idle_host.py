"""What did the launching thread do while the device waited for the host?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.grouping import Key
from kernelscope.metrics.idle_gaps import IdleGaps, by_thread
from kernelscope.metrics.idle_results import HOST
from kernelscope.metrics.idle_segments import Segments, cut, together
from kernelscope.metrics.intervals import touches, union
from kernelscope.metrics.thread_states import (
    ASLEEP,
    NOT_RECORDED,
    Host,
    driving_threads,
    label_code,
    thread_states,
)
from kernelscope.trace import distinct

Int32s = npt.NDArray[np.int32]


def name_host(host: Host, gaps: IdleGaps, segments: Segments, label: int) -> Segments:
    """Name the host's share of pauses by what the launching thread did.

    Parameters
    ----------
    host : Host
        What was recorded.
    gaps : IdleGaps
        The pauses.
    segments : Segments
        Stretches of them.
    label : int
        Which stretches are the host's; those whose launching thread is not known keep it.

    Notes
    -----
    Where the thread was asleep and nothing says why, the first other thread of its process, by
    id, that ever made a CUDA call, was on its core then and did not wait, is named in the
    detail, by what it did.
    """
    hosts = np.flatnonzero(segments.label == label)
    if not len(hosts):
        return segments
    asleep = label_code(host.labels, HOST + "off_core", ASLEEP)
    left = np.ones(len(segments), dtype=np.bool_)
    parts = []
    for thread, places in by_thread(host.calls, gaps.call[segments.gap[hosts]]):
        mine = hosts[places]
        left[mine] = False
        own = segments.take(mine)
        states = thread_states(host, thread, union(own.start, own.end))
        named, _ = cut(own, states.times, states.label)
        sleeping = named.label == asleep
        parts.append(named.take(~sleeping))
        if sleeping.any():
            parts.append(_busy_elsewhere(host, thread, named.take(sleeping)))
    return together(segments.take(left), *parts)


def _busy_elsewhere(host: Host, thread: Key, asleep: Segments) -> Segments:
    """Say what another driving thread of the process did while this one slept."""
    parts = []
    for other in driving_threads(host.calls):
        if other[0] != thread[0] or other == thread or other[1] is None or not len(asleep):
            continue
        core, _ = host.cores.get(other, NOT_RECORDED)
        if not touches(asleep.start, asleep.end, core).any():
            continue
        states = thread_states(host, other, union(asleep.start, asleep.end))
        label = np.where(states.busy, states.label, -1).astype(np.int32)
        cut_up, _ = cut(asleep, states.times, label)
        busy = cut_up.label != asleep.label[0]
        parts.append(replace(cut_up.take(busy), label=_elsewhere(host, cut_up.label[busy])))
        asleep = cut_up.take(~busy)
    return together(asleep, *parts)


def _elsewhere(host: Host, label: Int32s) -> Int32s:
    """Return the labels of sleeping while another thread did what `label` says."""
    known = list(host.labels)
    named = np.full(len(known), -1, dtype=np.int32)
    for code in distinct(label).tolist():
        what = known[code][1] or "host code"
        detail = f"{ASLEEP}; another driving thread: {what}"
        named[code] = label_code(host.labels, HOST + "off_core", detail)
    return np.asarray(named[label])
