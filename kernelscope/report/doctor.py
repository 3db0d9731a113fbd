"""What works on this machine, for a terminal: the answer of ``kernelscope doctor``."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from kernelscope.capture.checks import FAILED, MISSING, OK, UNKNOWN, WARNING, Check
from kernelscope.report.layout import Page, heading, paragraph
from kernelscope.report.text import printed

_MARKS = {OK: "✓", WARNING: "!", FAILED: "✗", MISSING: "-", UNKNOWN: "-"}
_STYLES = {OK: "", WARNING: "yellow", FAILED: "red", MISSING: "dim", UNKNOWN: "dim"}
_LABEL = 14


def render(found: Sequence[Check], page: Page, *, color: bool = False, unicode: bool = True) -> str:
    """Return checks as text: a line or more for each, and what to do next below it."""
    lines: list[Text] = heading(page, "What works here")
    for check in found:
        mark = f"{_MARKS[check.status]} {check.name}".ljust(_LABEL)
        said = check.found if check.status != UNKNOWN else f"not known: {check.found}"
        lines += paragraph(page, said, mark=mark, style=_STYLES[check.status])
        if check.next:
            lines += paragraph(page, check.next, mark=" " * _LABEL)
    return printed(lines[1:], page.width, color=color, unicode=unicode)
