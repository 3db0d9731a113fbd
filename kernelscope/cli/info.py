"""``kernelscope info``: what a trace file holds."""

from __future__ import annotations

import os

import click

from kernelscope.cli.output import emit, in_color, in_unicode, width
from kernelscope.cli.progress import progress


@click.command("info")
@click.argument("file", metavar="FILE", type=click.Path())
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people or for scripts.",
)
def command(file: str, format_name: str) -> int:
    """Say what a trace file holds, and what it does not.

    Profiler and version, GPUs with their limits, processes, tables with their rows, what was
    not recorded and the flag that would record it, and how each table was read.
    """
    with progress(1) as step:
        step(f"Reading {os.path.basename(file)}")
        from kernelscope.parsers import read  # noqa: PLC0415 - not for --help
        from kernelscope.report import about, to_json  # noqa: PLC0415
        from kernelscope.report.layout import Page  # noqa: PLC0415

        trace = read(file)
    if format_name == "json":
        emit(to_json.render(about.about(trace)), None)
    else:
        page = Page(width())
        emit(about.render(trace, page, color=in_color(), unicode=in_unicode()), None)
    return 0
