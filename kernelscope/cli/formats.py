"""The formats of ``kernelscope analyze``: what each may be asked for, and who writes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelscope.cli.output import (
    PIPED_WIDTH,
    destination,
    emit,
    ends_as_folder,
    in_color,
    in_unicode,
    protect,
    width,
)
from kernelscope.errors import OutputError, SelectionError, nearest
from kernelscope.report.printable import printable

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


def checked(request: Request, file: str, more: Sequence[str] = ()) -> Path | None:
    """Return where to write, None for standard output, or refuse before the work begins.

    Neither the trace nor one of `more` files that are read with it is ever written to.

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
    target = destination(
        request.output, file, folder=request.format_name == "csv", force=request.force
    )
    for path in _files(request, target):
        protect(path, file, force=request.force)
        for source in more:
            protect(path, source, force=request.force, what="read for this analysis")
    if request.format_name == "sqlite":
        _check_database(target, request.force)
    return target


def render(analysis: Analysis, request: Request, target: Path | None) -> str | None:
    """Return `analysis` as the text that was asked for; None where files were written instead."""
    if request.format_name == "sqlite" and target is not None:
        _write_sqlite(analysis, target)
        return None
    if target is not None and _to_folder(request, target):
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
            f"--table goes with --format csv or markdown: {format_name} is of the whole analysis."
        )


def _check_database(target: Path | None, force: bool) -> None:
    if target is None:
        raise OutputError(
            "--format sqlite writes a file, and no --output names it.",
            "Add, for example: --output analysis.sqlite",
        )
    if target.exists() and not target.is_file():
        raise OutputError(f"--output {target} is no file that can be replaced.", "Name another.")
    for path in (target, _description(target)):
        if path.exists() and path.stat().st_size and not force:
            raise OutputError(
                f"--output: {path} exists.", "Choose another file, or replace it with --force."
            )


def _files(request: Request, target: Path | None) -> list[Path]:
    """Return every file that will be written for `target`."""
    if target is None:
        return []
    if request.format_name == "sqlite":
        return [target, _description(target)]
    if _to_folder(request, target):
        return [target / f"{name}.csv" for name in _table_names(request)]
    return [target]


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
    from kernelscope.report.json_rows import json_rows  # noqa: PLC0415

    return to_json.render(document(analysis, json_rows))


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


def _to_folder(request: Request, target: Path) -> bool:
    """Tell a folder of CSV files from a file that does not exist yet, which has a suffix."""
    named = ends_as_folder(request.output or "")
    is_folder = target.is_dir() or named or not (target.suffix or target.exists())
    return request.format_name == "csv" and is_folder


def _table_names(request: Request) -> list[str]:
    from kernelscope.metrics.analysis import TABLES  # noqa: PLC0415 - not for --help

    return [request.table] if request.table else [each.name for each in TABLES]


def _write_csv_files(analysis: Analysis, request: Request, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for name in _table_names(request):
        emit(_csv(analysis, replace(request, table=name)), target / f"{name}.csv")


def _description(database: Path) -> Path:
    """Return where Datasette's description of a database goes: beside it."""
    return database.with_name(f"{database.stem}.metadata.json")


def _write_sqlite(analysis: Analysis, target: Path) -> None:
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - and what compresses files with it

    from kernelscope.report import to_sqlite  # noqa: PLC0415

    # Whoever finds the file finds it whole. A folder of its own, in the same file system, holds
    # what SQLite puts beside it as well, and whatever name it has is nobody's.
    with TemporaryDirectory(prefix=".kernelscope-", dir=target.parent) as folder:
        partial = Path(folder) / "database"
        to_sqlite.write(analysis, partial)
        partial.replace(target)
    description = _description(target)
    emit(to_sqlite.datasette_metadata(target.stem, analysis.capture.file), description)
    click.echo(
        f"To browse it: datasette {printable(str(target))} "
        f"--metadata {printable(str(description))}",
        err=True,
    )
