"""``kernelscope explain``: how a number comes about."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from kernelscope import units
from kernelscope.cli.options import counters, gpus, samples, selection, with_counters
from kernelscope.cli.output import destination
from kernelscope.cli.printing import print_lines
from kernelscope.cli.progress import progress

if TYPE_CHECKING:
    from kernelscope.metrics.explanations import Topic
    from kernelscope.report.explain import InTrace


def _metrics(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    from kernelscope.metrics.explanations import topics  # noqa: PLC0415 - for the shell only

    return [key for key in topics() if key.startswith(incomplete)]


@click.command("explain")
@click.argument("metric", metavar="[METRIC]", required=False, shell_complete=_metrics)
@click.argument("file", metavar="[FILE]", type=click.Path(), required=False)
@selection
@gpus
@counters
@samples
@click.option(
    "--check",
    is_flag=True,
    help="Recompute it in SQL from the trace's own tables, and exit with code 1 if that differs.",
)
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    metavar="N",
    help="Rows of the trace to show; 0 shows all.",
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people or for scripts.",
)
@click.option("--output", "-o", metavar="PATH", type=click.Path(), help="Write to this file.")
def command(  # noqa: PLR0913 - click passes an argument per option
    *,
    metric: str | None,
    file: str | None,
    check: bool,
    top: int,
    format_name: str,
    output: str | None,
    **chosen: Any,
) -> int:
    """Say how a number comes about: formula, denominator, source.

    With FILE, the trace's own numbers are put in. METRIC is the number's place in the JSON of
    kernelscope analyze (devices.kernel_ns, kernels.share), the name of a column (sm_fill), or
    that of a table or group (devices.partition), whose numbers are listed. Without METRIC, all
    are.

    \b
    Examples:
      kernelscope explain
      kernelscope explain gpu_utilization trace.sqlite
      kernelscope explain kernels.share trace.sqlite --only steady --check
      kernelscope explain devices
    """  # noqa: D301 - click wants the control character
    if check and file is None:
        raise click.UsageError("--check needs a FILE to check it in.")
    target = destination(output, file)
    from kernelscope.metrics.explanations import inside, resolve  # noqa: PLC0415 - not for --help
    from kernelscope.report import explain  # noqa: PLC0415

    several = [] if metric is None else inside(metric)
    if metric is None or several:
        if file is not None:
            raise click.UsageError(
                f"{metric!r} holds several metrics: name one of them with a FILE."
            )
        print_lines(
            format_name,
            target,
            top,
            lambda page: explain.part(page, metric, several) if metric else explain.listing(page),
            lambda: explain.catalogue(several if metric else None),
        )
        return 0
    topic = resolve(metric)
    found = None if file is None else _in_trace(topic, file, top, check, chosen)
    print_lines(
        format_name,
        target,
        top,
        lambda page: explain.lines(topic, page, found),
        lambda: explain.document(topic, found),
    )
    return _verdict(found) if check else 0


def _in_trace(topic: Topic, file: str, top: int, check: bool, chosen: dict[str, Any]) -> InTrace:
    """Return what a trace has to say of a number."""
    with progress(2) as step:
        step(f"Reading {os.path.basename(file)}")
        from kernelscope.parsers import read  # noqa: PLC0415 - not for --help
        from kernelscope.report.explain import InTrace  # noqa: PLC0415
        from kernelscope.report.explained import compare, numbers, unchecked  # noqa: PLC0415
        from kernelscope.report.sql_tables import source_of  # noqa: PLC0415

        source = source_of(read(file), **with_counters(chosen))
        step("Computing")
        rows, count = numbers(topic, source.analysis(), top)
        comparison = compare(topic, source) if check else None
    window = source.analysis().window
    spoken = f"window {units.duration(window.duration_ns)}: {window.chosen_by}"
    why = unchecked(topic, source) if check and comparison is None else ""
    withheld = source.trace.capture.serialised if any(row.value is None for row in rows) else None
    return InTrace(rows, count, spoken, comparison, why, withheld or "")


def _verdict(found: InTrace | None) -> int:
    if found is None:
        return 0
    if found.comparison is None:
        click.echo(f"--check: {found.unchecked}.", err=True)
        return 0
    return 1 if found.comparison.differences else 0
