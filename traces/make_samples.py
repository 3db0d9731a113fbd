"""Make the sample traces of this folder, and the answers beside them: ``python make_samples.py``.

The same rows come out every time; ``tests/oracle/test_samples.py`` holds them to it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelscope import oracle

SAMPLES: Mapping[str, tuple[str, str]] = {
    "resnet_training": ("resnet", "2025.5"),
    "cupy_2022": ("cupy_like", "2022.4"),
    "reversed_devices_2022": ("reversed_devices", "2022.4"),
    "two_processes_2020": ("two_processes", "2020.5"),
}
"""File → scene and export generation."""


def main(folder: Path) -> None:
    """Write every sample and its answers into `folder`."""
    for name, (scene, generation) in SAMPLES.items():
        plan = oracle.SCENES[scene]()
        path = oracle.write(plan, folder / f"{name}.sqlite", generation=generation, overwrite=True)
        answers = text_of(oracle.answers(plan, generation=generation))
        path.with_suffix(".answers.json").write_text(answers, encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size:,} bytes")


def text_of(answers: Mapping[str, Any]) -> str:
    """Return answers as JSON with one row a line, so that a difference can be read."""
    parts = []
    for key, value in answers.items():
        if isinstance(value, list) and value:
            rows = ",\n".join(f"    {_compact(row)}" for row in value)
            parts.append(f"  {json.dumps(key)}: [\n{rows}\n  ]")
        else:
            parts.append(f"  {json.dumps(key)}: {_compact(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
