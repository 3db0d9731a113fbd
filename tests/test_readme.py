"""The README shows what the command prints, to the letter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = "traces/resnet_training.sqlite"


def test_the_readme_shows_the_report_of_the_sample() -> None:
    """Run ``COLUMNS=100 kernelscope analyze traces/resnet_training.sqlite --top 5`` to renew it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = r"<!-- output: analyze -->\n```text\n(.*?)```\n<!-- /output -->"
    shown = re.search(block, readme, re.DOTALL)
    printed = subprocess.run(
        [sys.executable, "-m", "kernelscope", "analyze", SAMPLE, "--top", "5"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"},
        capture_output=True, text=True, encoding="utf-8", check=True,
    ).stdout  # fmt: skip
    assert shown is not None
    assert shown.group(1) == printed
