"""The formats of ``kernelscope analyze``: what each may be asked for, and who writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelscope.cli.output import PIPED_WIDTH, destination, in_color, in_unicode, width
from kernelscope.errors import OutputError, SelectionError, nearest

if TYPE_CHECKING:
    from kernelscope.metrics.analysis import Analysis

FORMATS = ("text", "json", "csv", "markdown", "sqlite")
DEFAULT_TABLE = "kernels"
_ONE_TABLE = ("csv", "markdown")


@dataclass(frozen=True, slots=True)
class Request:
    """What to write, and where, as the options say.

    Attributes
    ----------
    format_name : str
        One of :data:`FORMATS`.
    output : str or None
        A file, a folder of CSV files, or standard output.
    table : str or None
        The result table that csv and markdown write; None where not named.
    top : int
        Rows of each list in text and markdown; 0 for all.
    force : bool
        Whether a database may be replaced.
    """

    format_name: str
    output: str | None = None
    table: str | None = None
    top: int = 10
    force: bool = False


def checked(request: Request, file: str) -> Path | None:
    """Return where to write, None for standard output, or refuse before the work begins.

    Raises
    ------
    SelectionError
        If there is no such table.
    OutputError
        If the result could not be written there.
    click.UsageError
        If options contradict each other.
    """
    if request.table is not None:
        _check_table(request.table, request.format_name)
    target = destination(request.output, file, folder=request.format_name == "csv")
    if request.format_name == "sqlite":
        _check_database(target, request.force)
    return target


def render(analysis: Analysis, request: Request, target: Path | None) -> str | None:
    """Return `analysis` as the text that was asked for; None where files were written instead."""
    if request.format_name == "sqlite" and target is not None:
        _write_sqlite(analysis, target)
        return None
    if request.format_name == "csv" and target is not None and _is_folder(target):
        _write_csv_files(analysis, request, target)
        return None
    return _RENDERERS[request.format_name](analysis, request)


def _check_table(table: str, format_name: str) -> None:
    from kernelscope.metrics.analysis import TABLES  # noqa: PLC0415 - not for --help

    known = [each.name for each in TABLES]
    if table not in known:
        raise SelectionError(f"There is no table {table!r}.", nearest(table, known, limit=20))
    if format_name not in _ONE_TABLE:
        raise click.UsageError(
            f"--table goes with --format csv or markdown; {format_name} holds every table."
        )


def _check_database(target: Path | None, force: bool) -> None:
    if target is None:
        raise OutputError(
            "--format sqlite writes a file, and no --output names it.",
            "Add, for example: --output analysis.sqlite",
        )
    if target.exists() and target.stat().st_size and not force:
        raise OutputError(
            f"--output {target} exists.", "Choose another file, or replace it with --force."
        )


def _text(analysis: Analysis, request: Request) -> str:
    from kernelscope.report import text  # noqa: PLC0415 - rich is for those who look
    from kernelscope.report.layout import Page  # noqa: PLC0415

    if request.output not in (None, "-"):
        return text.render(analysis, Page(PIPED_WIDTH, request.top))
    page = Page(width(), request.top)
    return text.render(analysis, page, color=in_color(), unicode=in_unicode())


def _json(analysis: Analysis, _request: Request) -> str:
    from kernelscope.report import to_json  # noqa: PLC0415
    from kernelscope.report.document import document  # noqa: PLC0415

    return to_json.render(document(analysis))


def _csv(analysis: Analysis, request: Request) -> str:
    from kernelscope.report import to_csv  # noqa: PLC0415

    return to_csv.render(analysis.tables[request.table or DEFAULT_TABLE])


def _markdown(analysis: Analysis, request: Request) -> str:
    from kernelscope.report import to_markdown  # noqa: PLC0415

    return to_markdown.render(analysis.tables[request.table or DEFAULT_TABLE], request.top)


_RENDERERS: dict[str, Callable[[Analysis, Request], str]] = {
    "text": _text,
    "json": _json,
    "csv": _csv,
    "markdown": _markdown,
}


def _is_folder(target: Path) -> bool:
    """Tell a folder from a file that does not exist yet: a file has a suffix, ``kernels.csv``."""
    return target.is_dir() or not (target.suffix or target.exists())


def _write_csv_files(analysis: Analysis, request: Request, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for name in [request.table] if request.table else analysis.tables:
        text = _csv(analysis, replace(request, table=name))
        (target / f"{name}.csv").write_text(text, encoding="utf-8", newline="\n")


def _write_sqlite(analysis: Analysis, target: Path) -> None:
    from kernelscope.report import to_sqlite  # noqa: PLC0415

    # Whoever finds the file finds it whole.
    partial = target.with_name(f"{target.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        to_sqlite.write(analysis, partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    description = target.with_name(f"{target.stem}.metadata.json")
    description.write_text(
        to_sqlite.datasette_metadata(target.stem, analysis.capture.file), encoding="utf-8"
    )
    click.echo(f"To browse it: datasette {target} --metadata {description}", err=True)
