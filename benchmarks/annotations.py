"""Measure what annotations cost with and without a tool: ``python benchmarks/annotations.py``.

With a tool means the NVTX tool of the tests, which counts a range and writes nothing: what a
profiler does on top is its own. All samples are written as JSON beside the other results.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # run as a file, its folder stands in place of the checkout
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks import machine
from benchmarks.measuring import ROOT

SCHEMA_VERSION = 1
TOOL = ROOT / "tests" / "annotation" / "recorder.c"
REUSED_LIMIT, ITERATION_LIMIT_NS, GROWTH_LIMIT = 1.5, 1000.0, 1 << 20


def measured(loops: int, rounds: int, packages: Path | None) -> dict[str, Any]:
    """Run the child without a tool and with one; say why where there is none."""
    series: dict[str, Any] = {"without": _child(loops, rounds, packages, {})}
    if shutil.which("gcc") is None:
        return series | {"with": {"absent": "gcc is not here"}}
    with tempfile.TemporaryDirectory(prefix="kernelscope-benchmarks-") as folder:
        library = Path(folder) / "librecorder.so"
        command = ["gcc", "-shared", "-fPIC", "-O2", "-o", str(library), str(TOOL)]
        subprocess.run(command, check=True)
        tool = {"NVTX_INJECTION64_PATH": str(library)}
        return series | {"with": _child(loops, rounds, packages, tool)}


def _child(
    loops: int, rounds: int, packages: Path | None, variables: dict[str, str]
) -> dict[str, Any]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NVTX_", "RECORDER_"))}
    environment["PYTHONPATH"] = os.pathsep.join(str(path) for path in (packages, ROOT) if path)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.annotation_child", str(loops), str(rounds)],
        cwd=ROOT, env=environment | variables, capture_output=True, text=True, check=True,
    )  # fmt: skip
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def verdicts(series: dict[str, Any]) -> list[dict[str, Any]]:
    """Hold the figures against the targets; ratios are formed within each round."""
    without = series["without"]
    rounds = without["rounds"]
    found = [
        _verdict(
            "a reused range / nullcontext, no tool", "×", REUSED_LIMIT,
            [each["reused_phase"] / each["nullcontext"] for each in rounds],
        ),
        *(
            _verdict(f"{case}, no tool", "ns", ITERATION_LIMIT_NS, [each[case] for each in rounds])
            for case in ("iterations", "iterations_with_profile")
        ),
    ]  # fmt: skip
    for name, each in series.items():
        if "absent" not in each:
            title = f"memory over the iterations, {name} a tool"
            found.append(_verdict(title, "bytes", GROWTH_LIMIT, [float(each["growth_bytes"])]))
    return found


def _verdict(title: str, unit: str, limit: float, values: list[float]) -> dict[str, Any]:
    value = statistics.median(values)
    return {
        "title": title, "unit": unit, "limit": limit, "values": values, "value": value,
        "met": value <= limit,
    }  # fmt: skip


def text(results: dict[str, Any]) -> str:
    """Return the results as a table for people."""
    series = results["series"]
    nvtx = series["without"]["nvtx"]
    lines = [
        f"{results['machine']['cpu']}, {results['versions']['python']}, nvtx {nvtx}",
        f"Medians of {len(series['without']['rounds'])} rounds, ns a loop",
        "",
        f"{'':26}{'without a tool':>16}{'with one':>12}",
    ]
    for case in series["without"]["rounds"][0]:
        values = [
            f"{statistics.median(each[case] for each in series[name]['rounds']):.0f}"
            if "rounds" in series[name]
            else "–"
            for name in ("without", "with")
        ]
        lines.append(f"{case:26}{values[0]:>16}{values[1]:>12}")
    lines.append("")
    for each in results["targets"]:
        met = "met" if each["met"] else "NOT MET"
        value = f"{each['value']:,.2f} {each['unit']}, at most {each['limit']:,.2f}"
        lines.append(f"{each['title']}: {value}: {met}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, or show earlier results; return the exit code."""
    options = _parser().parse_args(arguments)
    if options.show:
        print(text(json.loads(options.show.read_text(encoding="utf-8"))))
        return 0
    began = datetime.now(UTC)
    described = machine.machine()
    series = measured(options.loops, options.repeats, options.packages)
    results = {
        "schema_version": SCHEMA_VERSION,
        "date": began.isoformat(timespec="seconds"),
        "kernelscope": machine.kernelscope(),
        "machine": described,
        "versions": machine.versions() | {"nvtx": series["without"]["nvtx"]},
        "loops": options.loops,
        "series": series,
        "targets": verdicts(series),
    }
    name = f"{results['date'][:10]}-{machine.short_cpu(described['cpu'])}.json"
    path = options.output or ROOT / "benchmarks" / "results" / "annotations" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written: {path}", file=sys.stderr)
    print(text(results))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks/annotations.py", description=__doc__)
    parser.add_argument("--loops", type=int, default=200_000, metavar="N", help="by default 200000")
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="rounds; by default 7")
    parser.add_argument(
        "--packages", type=Path, metavar="FOLDER", help="import from here first: another nvtx"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="where to write the samples")
    parser.add_argument("--show", type=Path, metavar="FILE", help="print an earlier run instead")
    return parser


if __name__ == "__main__":
    sys.exit(main())
