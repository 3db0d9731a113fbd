"""``kernelscope sql``: check a number, or ask what no command answers."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelscope.cli.lists import listing
from kernelscope.cli.options import counters, gpus, selection, with_counters
from kernelscope.cli.output import destination, emit
from kernelscope.cli.printing import print_lines
from kernelscope.cli.progress import progress
from kernelscope.report.printable import printable

if TYPE_CHECKING:
    from kernelscope.report.sql import Answer
    from kernelscope.trace import Trace


def _tables(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    from kernelscope.report.sql_tables import relations  # noqa: PLC0415 - for the shell only

    return [name for name in relations() if name.startswith(incomplete)]


class _SqlCommand(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take a query that begins with a comment for a query: no option has a space there."""
        return super().parse_args(
            ctx, [f"\n{each}" if _COMMENT.match(each) else each for each in args]
        )


_COMMENT = re.compile(r"--\s")


@click.command("sql", cls=_SqlCommand)
@click.argument("file", metavar="[FILE]", type=click.Path(), required=False)
@click.argument("query", metavar="[QUERY]", required=False)
@click.option(
    "--describe",
    "described",
    metavar="TABLE",
    shell_complete=_tables,
    help="List the columns of this table, with unit and meaning, instead.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop a query that runs longer.",
)
@selection
@gpus
@counters
@listing
def command(  # noqa: PLR0913 - click passes an argument per option
    *,
    file: str | None,
    query: str | None,
    described: str | None,
    timeout: float | None,
    top: int,
    format_name: str,
    output: str | None,
    **chosen: Any,
) -> int:
    """Ask the trace and its analysis in SQL.

    The tables of the trace have a row per event: kernels, api_calls, copies, ranges, ….  Those
    of the analysis are called result_…: result_kernels holds what kernelscope analyze says of
    each kernel. Without QUERY, they are listed. A QUERY of - is read from standard input.

    The SQL is SQLite's, with median(x), quantile(x, q) and stddev(x). Times are integers in ns;
    what is missing is NULL; a dot in a column's name is an underscore (quantiles_ns_p5);
    whole numbers divide to whole numbers, so write 1.0 * a / b. A query can only read.

    The options that choose a part of the trace choose it for the tables of the analysis and for
    the table window; --process and --device for those of the trace, too.

    \b
    Examples:
      kernelscope sql trace.sqlite
      kernelscope sql --describe kernels
      kernelscope sql trace.sqlite "SELECT name, count(*), sum(end_ns - start_ns) AS ns
                                    FROM kernels GROUP BY name ORDER BY ns DESC"
      kernelscope sql trace.sqlite - --format csv --output rows.csv < query.sql
    """  # noqa: D301 - click wants the control character
    if described is not None and query is not None:
        raise click.UsageError("--describe takes no QUERY.")
    target = destination(output, file)
    if query is None:
        return _guide(file, described, format_name, target)
    question = sys.stdin.read() if query == "-" else query
    with progress(2) as step:
        step(f"Reading {os.path.basename(str(file))}")
        from kernelscope.parsers import read  # noqa: PLC0415 - not for --help
        from kernelscope.report import sql  # noqa: PLC0415
        from kernelscope.report.sql_tables import source_of  # noqa: PLC0415

        trace = read(str(file))
        step("Asking")
        limit = top if top and format_name in ("text", "markdown") else None
        source = source_of(trace, **with_counters(chosen))
        answer = sql.execute(source, question, limit=limit, timeout_s=timeout)
    _write(answer, format_name, target)
    _warn(answer, trace)
    return 0


def _guide(file: str | None, described: str | None, format_name: str, target: Path | None) -> int:
    """Say which tables there are, or which columns one has."""
    from kernelscope.parsers import read  # noqa: PLC0415 - not for --help
    from kernelscope.report import sql_guide  # noqa: PLC0415

    if format_name not in ("text", "json"):
        raise click.UsageError(f"Without QUERY, the format is text or json, not {format_name}.")
    trace = None if file is None else read(file)
    print_lines(
        format_name,
        target,
        0,
        lambda page: (
            sql_guide.description(described, page) if described else sql_guide.listing(trace, page)
        ),
        lambda: sql_guide.document(trace, described),
    )
    return 0


def _write(answer: Answer, format_name: str, target: Path | None) -> None:
    from kernelscope.report import sql_answer  # noqa: PLC0415 - not for --help

    if format_name == "csv":
        emit(sql_answer.as_csv(answer), target)
    elif format_name == "markdown":
        emit(sql_answer.as_markdown(answer), target)
    else:
        print_lines(
            format_name,
            target,
            0,
            lambda page: sql_answer.lines(answer, page),
            lambda: sql_answer.document(answer),
        )


def _warn(answer: Answer, trace: Trace) -> None:
    """Say which tables were empty because nobody recorded them: absent is not zero."""
    for lacking in trace.capture.not_recorded:
        if lacking.table in answer.tables and lacking.how_to_record:
            how = f"{lacking.table} is empty because it was not recorded: {lacking.how_to_record}"
            click.echo(f"Note: {printable(how)}", err=True)
