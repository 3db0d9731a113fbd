"""The ``kernelscope`` command: one file a command; only :func:`main` catches errors.

Exit codes: 0 done; 1 a check failed under ``--strict``; 2 bad input or options; 130 interrupted;
141 the reader of the output went away.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

import click

from kernelscope._version import __version__
from kernelscope.cli.process import collect_rarely
from kernelscope.errors import KernelscopeError, nearest
from kernelscope.report.printable import printable

NAME = "kernelscope"
COMPLETION_VARIABLE = "_KERNELSCOPE_COMPLETE"

COMMANDS: dict[str, str] = {
    "profile": "kernelscope.cli.profile",
    "analyze": "kernelscope.cli.analyze",
    "iterations": "kernelscope.cli.iterations",
    "ranges": "kernelscope.cli.ranges",
    "explain": "kernelscope.cli.explain",
    "decode": "kernelscope.cli.decode",
    "counters": "kernelscope.cli.counters",
    "devices": "kernelscope.cli.devices",
    "sql": "kernelscope.cli.sql",
    "info": "kernelscope.cli.info",
    "doctor": "kernelscope.cli.doctor",
    "demo": "kernelscope.cli.demo",
    "completion": "kernelscope.cli.completion",
}
"""Command → the module whose ``command`` it is; in the order of the help."""

_BAD_INPUT, _INTERRUPTED, _CLOSED_PIPE = 2, 130, 141


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the commands in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command called `cmd_name`; None for an option.

        Raises
        ------
        click.UsageError
            If there is none; the message names the nearest.
        """
        module = COMMANDS.get(cmd_name)
        if module is not None:
            command: click.Command = import_module(module).command
            return command
        if cmd_name.startswith("-") or ctx.resilient_parsing:
            return None
        raise click.UsageError(f"No such command {cmd_name!r}. {nearest(cmd_name, COMMANDS)}", ctx)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name=NAME)
def cli() -> None:
    """Say where the time of a GPU went, from a trace that a profiler recorded.

    Start with: kernelscope analyze trace.sqlite
    """


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    args : sequence of str, optional
        Arguments without the program's name; those of the process by default.
    """
    # BLAS would start a thread for each core when NumPy loads; nothing here multiplies matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if args is None:  # the process is ours alone
        collect_rarely()
    _open_streams()
    try:
        return _guarded(list(sys.argv[1:] if args is None else args))
    except BrokenPipeError:  # of a result, or of the message that there is none
        return _closed_pipe()


def _guarded(args: list[str]) -> int:
    """Run the command line; what it raises on purpose becomes a message and an exit code."""
    try:
        code = _run(args)
        sys.stdout.flush()
    except click.exceptions.Exit as exit_:
        code = exit_.exit_code
    except click.ClickException as error:
        _show(error)
        code = error.exit_code
    except KernelscopeError as error:
        code = _fail(error.message, error.hint)
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        code = _fail(f"{where}{error.strerror or error}", "")
    except MemoryError:
        code = _fail(
            "There is not enough memory for this.",
            "Look at a part: --between, --only or --range; ranges that were never closed nest "
            "without end (kernelscope ranges FILE --lint).",
        )
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted.", err=True)
        code = _INTERRUPTED
    return code


def _run(args: list[str]) -> int:
    instruction = os.environ.get(COMPLETION_VARIABLE)
    if instruction:
        from click.shell_completion import shell_complete  # noqa: PLC0415 - for the shell only

        return shell_complete(cli, {}, NAME, COMPLETION_VARIABLE, instruction)
    # Not cli.main(): it turns a closed pipe into exit code 1, which --strict gives a meaning.
    with cli.make_context(NAME, args) as context:
        result = cli.invoke(context)
    return result if isinstance(result, int) else 0


def _show(error: click.ClickException) -> None:
    """Print click's own message, in which may be the user's words, or the name of a file."""
    shown = io.StringIO()
    error.show(shown)
    for line in shown.getvalue().rstrip("\n").split("\n"):
        click.echo("\t".join(map(printable, line.split("\t"))), err=True)


def _fail(message: str, hint: str) -> int:
    click.secho("Error: ", err=True, nl=False, fg=None if os.environ.get("NO_COLOR") else "red")
    click.echo(printable(message), err=True)
    if hint:
        click.echo(printable(hint), err=True)
    return _BAD_INPUT


def _open_streams() -> None:
    """Let what was closed for the process (``>&-``) swallow what is written to it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - it stays


def _closed_pipe() -> int:
    """Be quiet where ``| head`` has seen enough, also when Python flushes at its exit."""
    with suppress(OSError):  # a stream that is none of the system's has nothing to be flushed to
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _CLOSED_PIPE
