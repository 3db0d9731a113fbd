"""The section of the terminal report on what to mend first."""

from __future__ import annotations

from typing import Any

from rich.cells import cell_len
from rich.text import Text

from kernelscope import units
from kernelscope.metrics.analysis import Analysis
from kernelscope.metrics.savable import LEAST_SHARE
from kernelscope.metrics.shell_words import shell_path, split_words
from kernelscope.report.device_names import labels
from kernelscope.report.layout import Page, heading, paragraph

_MOST = 7
_GOES_ON = " \\"
"""Behind a line of a command that the next one goes on with."""

_LOOKED_FOR = (
    "starvation by data loading or between iterations, pageable copies, synchronisations, "
    "launch-bound stretches, many tiny kernels, exposed communication, allocation, module "
    "loading, layout conversions, slow iterations, profiler overhead"
)


def findings(analysis: Analysis, page: Page) -> list[Text]:
    """What should be mended first, and what can that save at most?"""
    if not _can_be_judged(analysis):
        return []
    rows = analysis.tables["findings"].records()
    if not rows:
        return [*heading(page, "Findings"), *paragraph(page, _none(analysis))]
    note = "bounds overlap: they do not add up" if len(rows) > 1 else ""
    lines = heading(page, "Findings", note)
    for rank, row in enumerate(rows[:_MOST], start=1):
        lines += _finding(analysis, page, rank, row)
    if len(rows) > _MOST:
        left = units.quantity(len(rows) - _MOST, "more finding")
        lines += paragraph(page, f"… {left} (--format markdown --table findings)", style="dim")
    return lines


def _can_be_judged(analysis: Analysis) -> bool:
    seen = len(analysis.devices) and analysis.window.duration_ns
    return bool(seen) and analysis.capture.serialised is None


def _none(analysis: Analysis) -> str:
    of = "an iteration" if len(analysis.tables["iterations"]) else "the window"
    return (
        f"No findings. As far as the capture tells, none of these could save "
        f"{LEAST_SHARE * 100:g} % of {of}: {_LOOKED_FOR}."
    )


def _finding(analysis: Analysis, page: Page, rank: int, row: dict[str, Any]) -> list[Text]:
    mark = f"{rank}  "
    blank = " " * len(mark)
    where = row["where"]
    if where and len(analysis.devices) > 1:
        where = f"on {labels(analysis)[row['device']]}, {where}"
    evidence = f"{_sentence(row['evidence'])} {_sentence(where)}".rstrip()
    return [
        *paragraph(page, row["title"], mark=mark, style="bold"),
        *paragraph(page, _bound(row, analysis.window.duration_ns), mark=blank, style="yellow"),
        *paragraph(page, evidence, mark=blank),
        *paragraph(page, f"Try: {_ended(row['advice'])}", mark=blank),
        *_next(analysis, row["next"], page, blank),
    ]


def _next(analysis: Analysis, command: str, page: Page, blank: str) -> list[Text]:
    """Return a command as a shell takes it, over several lines where it is too long for one.

    FILE stands for a file whose name alone is.
    """
    first, room = f"{blank}Next: ", page.width - len(f"{blank}Next: ") - len(_GOES_ON)
    file = shell_path(analysis.capture.file)
    if cell_len(file) > room:
        command = command.replace(file, "FILE")
    lines = [""]
    for word in split_words(command):
        longer = f"{lines[-1]} {word}".lstrip()
        if cell_len(longer) > room:
            lines[-1] += _GOES_ON
            lines.append(word)
        else:
            lines[-1] = longer
    marks = [first, *[" " * len(first)] * len(lines)]
    return [Text(mark + line, style="dim") for mark, line in zip(marks, lines, strict=False)]


def _bound(row: dict[str, Any], window_ns: int) -> str:
    saving, share = row["saving_bound_ns"], row["saving_share"]
    if saving is None or share is None:
        return "It costs nothing in a run without the profiler, but spoils this picture."
    if row["per"] == "window":
        whole = f"the {units.duration(window_ns)} window"
    elif 0 < share < 1:
        whole = f"a {units.duration(saving / share)} iteration"
    else:  # a bound may exceed the mean, and is then all of it
        whole = "an iteration"
    return f"Saves at most {units.duration(saving)} of {whole}, {units.ratio(share)}."


def _sentence(text: str | None) -> str:
    """Return a clause as a sentence: the table holds what a sentence may go on with."""
    return f"{text[0].upper()}{_ended(text[1:])}" if text else ""


def _ended(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."
