"""Print lines of a page for people, or JSON for scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelscope.cli.output import PIPED_WIDTH, emit, in_color, in_unicode, width

if TYPE_CHECKING:
    from rich.text import Text

    from kernelscope.report.layout import Page


def print_lines(
    format_name: str,
    target: Path | None,
    top: int,
    text: Callable[[Page], Iterable[Text]],
    data: Callable[[], dict[str, Any]],
) -> None:
    """Write what `text` or, for the format ``json``, `data` returns.

    Parameters
    ----------
    format_name : str
        ``json`` or ``text``.
    target : Path or None
        A file; None is standard output.
    top : int
        Rows of each list.
    text : callable
        Page → lines of the report for people.
    data : callable
        → what JSON holds.
    """
    from kernelscope.report import to_json  # noqa: PLC0415 - not for --help
    from kernelscope.report.layout import Page  # noqa: PLC0415
    from kernelscope.report.text import printed  # noqa: PLC0415

    if format_name == "json":
        emit(to_json.render(data()), target)
        return
    page = Page(width() if target is None else PIPED_WIDTH, top)
    to_terminal = target is None
    shown = printed(
        text(page),
        page.width,
        color=to_terminal and in_color(),
        unicode=in_unicode() if to_terminal else True,
    )
    emit(shown.removeprefix("\n"), target)
