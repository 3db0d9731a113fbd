"""What should be mended first, and what can that save at most?

The rules (:mod:`kernelscope.metrics.finding_rules`) say which stretches of device time would go; a
finding that could save less than ``savable.LEAST_SHARE`` of an iteration is none. Bounds overlap:
the same pause may follow a synchronisation in a launch-bound stretch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelscope import units
from kernelscope.metrics.finding_results import FINDINGS
from kernelscope.metrics.finding_rules import RULES
from kernelscope.metrics.intervals import intersection, overlap, total
from kernelscope.metrics.savable import LEAST_SHARE, Found, Seen, bound, largest
from kernelscope.metrics.shell_words import shell_path, shell_word
from kernelscope.metrics.window import whole
from kernelscope.trace import Table, distinct, is_missing

Row = dict[str, Any]

SAME_SHARE = 0.9
"""Two findings are about the same pauses where one's are so much of the other's."""


def findings(seen: Seen) -> Table:
    """What should be mended first, and what can that save at most?

    Parameters
    ----------
    seen : Seen
        What the other metrics found.

    Returns
    -------
    Table
        Under ``finding_results.FINDINGS``, the greatest bound first, but ``data_loading`` before
        ``pageable_copies`` that could save nearly the same pauses. None where the trace is fine,
        where no device was used, or of a serialised capture.
    """
    told: dict[str, tuple[Found, Row]] = {}
    serialised = seen.trace.capture.serialised is not None
    if seen.chosen and seen.window.duration_ns and not serialised:
        for rule in RULES:
            found = rule(seen)
            row = None if found is None else _row(found, seen)
            if found is not None and row is not None:
                told[found.code] = found, row
    rows = [row for _, row in told.values()]
    rows.sort(key=lambda row: (-(row["saving_bound_ns"] or 0), row["code"]))
    return Table.of_records(FINDINGS, _cause_first(rows, told, seen))


def _cause_first(rows: list[Row], told: Mapping[str, tuple[Found, Row]], seen: Seen) -> list[Row]:
    """Put what the host did in the pauses before what made it late for them.

    A copy in which the host waits for the GPU makes everything late that comes after, the
    fetching of data above all. Where nearly all that it could save are the pauses in which data
    is fetched, that is the story, and the copy a part of it.
    """
    codes = [row["code"] for row in rows]
    if not {"data_loading", "pageable_copies"} <= set(codes):
        return rows
    behind, cause = codes.index("pageable_copies"), codes.index("data_loading")
    (copies, row), (loading, _) = told["pageable_copies"], told["data_loading"]
    device = seen.chosen[row["device"]]
    pauses, fetched = (
        intersection(each.savable[device], seen.basis.periods)
        for each in (copies, loading)
        if each.savable is not None
    )
    if cause < behind or overlap(pauses, fetched) < SAME_SHARE * total(pauses):
        return rows
    rows.insert(behind, rows.pop(cause))
    return rows


def _row(found: Found, seen: Seen) -> Row | None:
    basis = seen.basis
    saving = None
    if found.savable is not None:
        saving, device = bound(found.savable, seen)
        if saving < LEAST_SHARE * basis.mean_ns:
            return None
        stretch = largest(found.savable[device], basis.periods)
    else:
        device = max(seen.chosen, key=lambda each: total(found.stretches[each]))
        window = np.array([seen.window.start_ns]), np.array([seen.window.end_ns])
        stretch = largest(found.stretches[device], window)
    return {
        "code": found.code,
        "title": found.title,
        "evidence": found.evidence,
        "saving_bound_ns": saving,
        "saving_share": None if saving is None else min(1.0, saving / basis.mean_ns),
        "per": basis.name,
        "device": seen.chosen.index(device),
        "where": "" if stretch is None else _place(stretch, seen),
        "advice": found.advice,
        "next": f"kernelscope {_command(found.next, stretch, seen)}",
    }


def _place(stretch: tuple[int, int], seen: Seen) -> str:
    start, end = stretch
    text = f"the longest stretch {units.duration(end - start)} at {units.moment(start)}"
    rows = seen.tables["iterations"]
    inside = np.flatnonzero(
        (rows["start_ns"] <= start) & (start < rows["start_ns"] + rows["period_ns"])
    )
    return f"{text}, in iteration {rows['index'][inside[0]]}" if len(inside) else text


def _command(template: str, stretch: tuple[int, int] | None, seen: Seen) -> str:
    """Return the command line, with the file and what was chosen of it."""
    window, everything, options = seen.window, whole(seen.trace), []
    low, high = (window.start_ns, window.end_ns) if stretch is None else stretch
    if "BETWEEN" in template:
        margin = max((high - low) // 10, 1_000)
        options.append(f"--between {max(low - margin, 0)}ns,{high + margin}ns")
    elif (window.start_ns, window.end_ns) != (everything.start_ns, everything.end_ns):
        options.append(f"--between {window.start_ns}ns,{window.end_ns}ns")
    options += _selection(seen)
    file = shell_path(seen.trace.capture.file)
    return " ".join([template.replace(" BETWEEN", "").replace("FILE", file), *options])


def _selection(seen: Seen) -> list[str]:
    """Return the options that choose what was chosen."""
    options = []
    choices = (("--process", "process_id"), ("--device", "device_id"))
    for option, column in choices if seen.partial else ():
        every, some = (
            {
                int(value)
                for table in (trace.kernels, trace.copies, trace.graphs)
                for value in distinct(table[column][~is_missing(table[column])])
            }
            for trace in (seen.everything, seen.trace)
        )
        if some < every:
            options += [f"{option} {value}" for value in sorted(some)]
    summary = seen.summary
    if summary.source == "user" and summary.family is not None:
        options.append(f"--iteration {shell_word(summary.family)}")
    return options
