"""Options and writers of the commands that show one list: ``iterations`` and ``ranges``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kernelscope.cli.output import PIPED_WIDTH, emit, in_color, in_unicode, width

if TYPE_CHECKING:
    from rich.text import Text

    from kernelscope.report.layout import Page
    from kernelscope.trace import Table

Command = TypeVar("Command", bound=Callable[..., Any])

FORMATS = ("text", "json", "csv", "markdown")


def listing(command: Command) -> Command:
    """Add the options of a command that shows one list."""
    for option in (
        click.option(
            "--top",
            type=click.IntRange(min=0),
            default=20,
            show_default=True,
            metavar="N",
            help="Rows in text and markdown; 0 shows all. Data formats are never cut.",
        ),
        click.option(
            "--format",
            "format_name",
            type=click.Choice(FORMATS),
            default="text",
            show_default=True,
            help="What to write.",
        ),
        click.option(
            "--output", "-o", metavar="PATH", type=click.Path(), help="Write to this file."
        ),
    ):
        command = option(command)
    return command


def write(  # noqa: PLR0913 - three writers, and where to
    format_name: str,
    target: Path | None,
    top: int,
    *,
    text: Callable[[Page], Iterable[Text]],
    data: Callable[[], dict[str, Any]],
    table: Table,
) -> None:
    """Write a list in the format that was asked for.

    Parameters
    ----------
    format_name : str
        One of :data:`FORMATS`.
    target : Path or None
        A file; None is standard output.
    top : int
        Rows in text and markdown; 0 for all.
    text : callable
        Page → lines of the report for people.
    data : callable
        → what JSON holds.
    table : Table
        What csv and markdown hold.
    """
    from kernelscope.report import to_csv, to_json, to_markdown  # noqa: PLC0415 - not for --help
    from kernelscope.report.layout import Page  # noqa: PLC0415
    from kernelscope.report.text import printed  # noqa: PLC0415

    if format_name == "json":
        emit(to_json.render(data()), target)
    elif format_name == "csv":
        emit(to_csv.render(table), target)
    elif format_name == "markdown":
        emit(to_markdown.render(table, top), target)
    elif target is not None:
        page = Page(PIPED_WIDTH, top)
        emit(printed(text(page), page.width, color=False, unicode=True), target)
    else:
        page = Page(width(), top)
        shown = printed(text(page), page.width, color=in_color(), unicode=in_unicode())
        emit(shown, None)
