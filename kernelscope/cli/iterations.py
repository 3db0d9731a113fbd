"""``kernelscope iterations``: how long a training step takes, and what the GPU does in it."""

from __future__ import annotations

import os
from typing import Any

import click

from kernelscope.cli.lists import listing, write
from kernelscope.cli.options import samples, selection
from kernelscope.cli.output import destination
from kernelscope.cli.progress import progress


@click.command("iterations")
@click.argument("file", metavar="FILE", type=click.Path())
@selection
@samples
@click.option(
    "--cross-check",
    is_flag=True,
    help="Compare the iterations with what repeats in the kernel sequence.",
)
@listing
def command(*, file: str, top: int, format_name: str, output: str | None, **chosen: Any) -> int:
    """Say how long training iterations take, one by one.

    An iteration lasts from its start to the next one's: data loading usually lies outside its
    range. They are found among the NVTX ranges, or in the kernel sequence where there are none.
    CSV, Markdown and JSON also say what CPU and GPU did meanwhile, and why the GPU stood still.

    \b
    Examples:
      kernelscope iterations trace.sqlite
      kernelscope iterations trace.sqlite --iteration 'step *' --batch-size 64 --ranks 8
      kernelscope iterations trace.sqlite --format csv --output steps.csv
    """  # noqa: D301 - click wants the control character
    target = destination(output, file)
    with progress(2) as step:
        step(f"Reading {os.path.basename(file)}")
        from kernelscope.metrics.analysis import analyze  # noqa: PLC0415 - not for --help
        from kernelscope.metrics.iteration_causes import iteration_causes  # noqa: PLC0415
        from kernelscope.parsers import read  # noqa: PLC0415
        from kernelscope.report import document, text_iterations  # noqa: PLC0415

        trace = read(file)
        step("Computing")
        result = analyze(trace, **chosen)
        explained = iteration_causes(
            result.tables,
            result.iteration_summary.process_id,
            serialised=trace.capture.serialised is not None,
        )
    write(
        format_name,
        target,
        top,
        text=lambda page: text_iterations.page_of(result, explained, page),
        data=lambda: document.iterations_document(result),
        table=explained,
    )
    return 0
