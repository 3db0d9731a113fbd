"""``kernelscope demo``: a first report for whoever has no trace at hand."""

from __future__ import annotations

import click

from kernelscope.cli.output import destination
from kernelscope.errors import OutputError
from kernelscope.report.printable import printable

SCENE = "resnet"
DEFAULT = "kernelscope-demo.sqlite"


@click.command("demo")
@click.option(
    "--output",
    "-o",
    metavar="PATH",
    type=click.Path(),
    help=f"Where to write the sample trace; {DEFAULT} in the current folder by default.",
)
@click.option("--force", is_flag=True, help="Replace the file that --output names.")
@click.pass_context
def command(ctx: click.Context, output: str | None, force: bool) -> int:
    """Write a small sample trace and analyze it.

    The trace is made up, not measured; its layout is that of an Nsight Systems export.
    """
    from kernelscope import oracle  # noqa: PLC0415 - not for --help
    from kernelscope.cli.analyze import command as analyze  # noqa: PLC0415

    # The default file is our own and may be made again; what a user names may be dear.
    replaced = force or output is None
    path = destination(DEFAULT if output is None else output, None, force=replaced)
    if path is None:
        raise OutputError("--output -: a trace is a file.", "Name one.")
    if path.exists() and not replaced:
        raise OutputError(f"--output {output} exists.", "Choose another file, or add --force.")
    oracle.write(oracle.SCENES[SCENE](), path, overwrite=True)
    click.echo(
        f"Wrote a sample trace; now running: kernelscope analyze {printable(str(path))}", err=True
    )
    code: int = ctx.invoke(analyze, file=str(path))
    return code
