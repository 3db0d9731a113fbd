"""The README shows what the commands print, to the letter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = "traces/resnet_training.sqlite"

COMMANDS = {
    "analyze": ("analyze", SAMPLE, "--top", "5"),
    "iterations": ("iterations", SAMPLE, "--top", "4"),
    "ranges": ("ranges", SAMPLE, "--tree"),
}
"""Marked block of the README → the command whose output it is, on 100 columns."""


def printed(arguments: tuple[str, ...]) -> str:
    """Return what a command prints; the way to renew a block, too."""
    return subprocess.run(
        [sys.executable, "-m", "kernelscope", *arguments],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    ).stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_the_readme_shows_what_is_printed(name: str) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = rf"<!-- output: {name} -->\n```text\n(.*?)```\n<!-- /output -->"
    shown = re.search(block, readme, re.DOTALL)
    assert shown is not None
    assert shown.group(1) == printed(COMMANDS[name])
