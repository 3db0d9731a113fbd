"""``kernelscope ranges``: which parts of the program take the device's time."""

from __future__ import annotations

import os
import re
from typing import Any

import click

from kernelscope.cli.lists import listing, write
from kernelscope.cli.options import selection
from kernelscope.cli.output import destination
from kernelscope.cli.progress import progress


@click.command("ranges")
@click.argument("file", metavar="FILE", type=click.Path())
@selection
@click.option("--tree", is_flag=True, help="Show the ranges inside each other.")
@click.option(
    "--by",
    type=click.Choice(["path", "name"]),
    default="path",
    show_default=True,
    help="A row per path, or per name wherever it stands.",
)
@click.option(
    "--path",
    metavar="PATH",
    help="Only ranges at this path and inside it, globs allowed: 'step #/forward', or as printed, "
    "with ' > ' between names.",
)
@click.option("--match", metavar="REGEX", help="Only ranges in whose name this is found.")
@click.option(
    "--raw/--fold",
    default=None,
    help="Keep digits in names ('step 1', 'step 2'), or fold them ('step #'). Text and markdown "
    "fold them unless --path or --match names a digit; data formats keep them.",
)
@click.option(
    "--nsys-rule",
    "strict",
    is_flag=True,
    help="Apply the rule of nsys stats: a range holds whole calls of its own thread only.",
)
@click.option(
    "--process-ranges",
    is_flag=True,
    help="Start/end ranges hold the launches of every thread of their process.",
)
@click.option(
    "--overlap",
    is_flag=True,
    help="Say what CPU and GPU did while the ranges were open: both, one, neither.",
)
@click.option("--lint", is_flag=True, help="Say what is wrong with the ranges instead.")
@listing
def command(  # noqa: PLR0913 - click passes an argument per option
    *,
    file: str,
    top: int,
    format_name: str,
    output: str | None,
    tree: bool,
    by: str,
    path: str | None,
    match: str | None,
    raw: bool | None,
    lint: bool,
    **chosen: Any,
) -> int:
    """Say which NVTX ranges take the device's time.

    Kernels belong to the ranges that were open where they were launched; work that another
    thread launches (PyTorch's backward pass) belongs to the iteration that was open then.
    "kernels" includes the ranges inside, "self" does not.

    \b
    Examples:
      kernelscope ranges trace.sqlite --tree
      kernelscope ranges trace.sqlite --path 'step #/forward' --only steady
      kernelscope ranges trace.sqlite --by name --match attention
      kernelscope ranges trace.sqlite --overlap
      kernelscope ranges trace.sqlite --lint
    """  # noqa: D301 - click wants the control character
    if by == "name" and (tree or path is not None):
        raise click.UsageError("--tree and --path go with --by path.")
    if chosen["strict"] and chosen["process_ranges"]:
        raise click.UsageError("--nsys-rule leaves no choice: nsys knows no --process-ranges.")
    if chosen["overlap"] and (tree or lint or chosen["strict"] or chosen["process_ranges"]):
        raise click.UsageError(
            "--overlap is a list of its own: without --tree, --lint, --nsys-rule, --process-ranges."
        )
    folded = _folds(format_name, path, match) if raw is None else not raw
    target = destination(output, file)
    with progress(2) as step:
        step(f"Reading {os.path.basename(file)}")
        from kernelscope.metrics.range_view import matching, range_view  # noqa: PLC0415
        from kernelscope.metrics.ranges import range_tree  # noqa: PLC0415
        from kernelscope.parsers import read  # noqa: PLC0415 - not for --help
        from kernelscope.report import document, text_ranges  # noqa: PLC0415

        trace = read(file)
        step("Computing")
        view = range_view(trace, by_name=by == "name", folded=folded, **chosen)
        rows = matching(view.table, path=path, match=match, around=tree)
        rows = range_tree(rows) if tree else rows
    write(
        format_name,
        target,
        top,
        text=lambda page: text_ranges.page_of(view, rows, page, tree=tree, lint=lint),
        data=lambda: document.ranges_document(view, rows),
        table=view.findings if lint else rows,
    )
    return 0


def _folds(format_name: str, path: str | None, match: str | None) -> bool:
    """Return whether people look, who are spared digits that they did not ask for."""
    named = re.search(r"[0-9]|\\d", f"{path or ''}{match or ''}")
    return format_name in ("text", "markdown") and named is None
