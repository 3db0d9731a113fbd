"""``kernelscope decode``: what the name of a kernel says."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelscope.cli.lists import listing, write
from kernelscope.cli.output import destination
from kernelscope.cli.progress import progress

if TYPE_CHECKING:
    from kernelscope.trace import Table


@click.command("decode")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--trace",
    "file",
    metavar="FILE",
    type=click.Path(),
    help="Decode the kernels of this trace, and say how much of its time is known.",
)
@listing
def command(
    *, names: tuple[str, ...], file: str | None, top: int, format_name: str, output: str | None
) -> int:
    """Say what a kernel's name tells of its work.

    Library, operation, pass, types, pipe (CUDA cores or tensor cores, and in which type), tile,
    stages, layout. NAME is a full kernel name, mangled or not; - reads names from standard input,
    one a line. What a name does not prove stays unknown.

    \b
    Examples:
      kernelscope decode ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn
      cut -d, -f1 kernels.csv | kernelscope decode - --format csv
      kernelscope decode --trace trace.sqlite --top 0
    """  # noqa: D301 - click wants the control character
    if bool(names) == (file is not None):
        raise click.UsageError("Give names of kernels, or --trace FILE.")
    target = destination(output, file)
    if file is not None:
        return _of_trace(file, format_name, target, top)
    from kernelscope.metrics.decoded_names import decoded_names  # noqa: PLC0415 - not for --help

    wanted = list(dict.fromkeys(_from_input() if names == ("-",) else names))
    _write(decoded_names(wanted), format_name, target, top, None)
    return 0


def _of_trace(file: str, format_name: str, target: Path | None, top: int) -> int:
    with progress(2) as step:
        step(f"Reading {os.path.basename(file)}")
        from kernelscope.metrics.decoded_names import decoded_kernels  # noqa: PLC0415
        from kernelscope.parsers import read  # noqa: PLC0415

        trace = read(file)
        step("Decoding")
        table = decoded_kernels(trace)
    _write(table, format_name, target, top, file)
    return 0


def _write(table: Table, format_name: str, target: Path | None, top: int, file: str | None) -> None:
    from kernelscope.metrics.decoded_names import document  # noqa: PLC0415 - not for --help
    from kernelscope.report import text_decoded  # noqa: PLC0415
    from kernelscope.report.document import records  # noqa: PLC0415

    write(
        format_name,
        target,
        top,
        text=lambda page: (
            text_decoded.page_of_names(table, page)
            if file is None
            else text_decoded.page_of_trace(table, page, file)
        ),
        data=lambda: {
            **({} if file is None else {"file": file, "coverage": document(table)}),
            "names": records(table),
        },
        table=table,
    )


def _from_input() -> list[str]:
    """Return the names on standard input, whatever bytes they hold."""
    text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    return [line for line in text.splitlines() if line.strip()]
