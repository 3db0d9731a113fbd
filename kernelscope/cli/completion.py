"""``kernelscope completion``: teach a shell the commands and options."""

from __future__ import annotations

import sys

import click

from kernelscope.cli.output import emit

SHELLS = {
    "bash": 'eval "$(kernelscope completion bash)"    # in ~/.bashrc',
    "zsh": 'eval "$(kernelscope completion zsh)"    # in ~/.zshrc, after compinit',
    "fish": "kernelscope completion fish > ~/.config/fish/completions/kernelscope.fish",
}
"""Shell → the line that installs the completion."""


@click.command("completion")
@click.argument("shell", type=click.Choice(list(SHELLS)))
def command(shell: str) -> int:
    """Print the completion script of a shell.

    It completes commands, options, and the names of tables.

    \b
    To install it:
      bash  eval "$(kernelscope completion bash)"    # in ~/.bashrc
      zsh   eval "$(kernelscope completion zsh)"     # in ~/.zshrc, after compinit
      fish  kernelscope completion fish > ~/.config/fish/completions/kernelscope.fish
    """  # noqa: D301 - click wants the control character
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - not for --help

    from kernelscope.cli import COMPLETION_VARIABLE, NAME, cli  # noqa: PLC0415 - a circle else

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click knows no completion for {shell}")
    emit(kind(cli, {}, NAME, COMPLETION_VARIABLE).source() + "\n", None)
    if sys.stdout.isatty():
        click.echo(f"# To install it: {SHELLS[shell]}", err=True)
    return 0
