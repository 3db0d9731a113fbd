"""The README's example runs, and the definition of the scheme says what the code does."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

from kernelscope import schema
from kernelscope.annotation import scheme
from tests.annotation.recorder import ROOT, recorded
from tests.annotation.test_round_trip import read_back

PAGE = (ROOT / "docs" / "annotation-scheme.md").read_text(encoding="utf-8")

BEFORE = """
import warnings
import kernelscope as ks
warnings.simplefilter("ignore", ks.annotation.CaptureWarning)

class Anything:
    def __getattr__(self, name):
        return lambda: None

loader = [(1, 2)] * 40
optimizer, model = Anything(), lambda inputs, targets: Anything()
"""


def test_the_example_of_the_readme(tool: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.partition("## Annotating a training loop\n")[2]
    example = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert example is not None
    calls = recorded(tool, BEFORE + textwrap.dedent(example.group(1)))
    pushed = [(c.message, c.payload) for c in calls if c.call == "push"]
    phases = [(name, None) for name in ("forward", "backward", "optimizer")]

    assert len(pushed) == 5 * 40 + 1
    assert pushed[5 * 25 : 5 * 26] == [
        ("data loading", 25), ("iteration {ks1 batch=64}", 25), *phases,
    ]  # fmt: skip
    places = {c.call: place for place, c in enumerate(calls) if c.call in ("start", "end")}
    recorded_part = calls[places["start"] : places["end"]]
    numbers = [c.payload for c in recorded_part if c.call == "push" and c.category == 1]
    assert numbers == list(range(20, 30))


def test_the_page_numbers_the_roles() -> None:
    rows = re.findall(r"^\| (\d+) \| `([^`]+)` \|", PAGE, re.MULTILINE)

    assert [(int(number), role) for number, role in rows] == list(enumerate(scheme.ROLES, 1))


def test_the_pages_example_is_written_and_read() -> None:
    found = re.search(r"```text\n(.*)\n```", PAGE)
    assert found is not None
    tensors = [((64, 3, 224, 224), "float32"), ((64, 3, 7, 7), "float32")]
    fields: dict[str, Any] = {
        "path": "encoder.conv1",
        "in": scheme.described(tensors),
        "flops": 15104999424,
    }

    assert scheme.message("conv1", **fields) == found.group(1)
    assert read_back(found.group(1)) == {
        "name": "conv1",
        "module_path": "encoder.conv1",
        "input_shapes": "[64,3,224,224] [64,3,7,7]",
        "input_dtypes": "float32 float32",
        "flops_model": 15104999424,
    }


def test_the_page_names_columns_that_exist() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", PAGE, re.MULTILINE)
    columns = [name for _, cell in rows for name in re.findall(r"`(\w+)`", cell)]

    assert [field for field, _ in rows] == ["role", "path", "in", "flops", "batch"]
    assert set(columns) <= set(schema.RANGES.names)
    assert f"version {scheme.VERSION}" in PAGE.splitlines()[0]
