"""`read_counters`: what is recognised, what is refused and how, and how runs come together."""

from __future__ import annotations

import builtins
import contextlib
import io
import struct
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kernelscope as ks
from kernelscope.errors import (
    DamagedFileError,
    KernelscopeError,
    NeedsExportError,
    NotATraceError,
    NotRecordedError,
    TraceFileError,
)
from kernelscope.parsers import counter_formats, ncu_blocks
from kernelscope.parsers.counter_file import CounterFile
from tests.corpus import counter_files, each, needs_corpus, nsys_traces, nvprof_traces
from tests.parsers import nvprof_files
from tests.parsers.counter_texts import details, nvprof_summary, written


def field(number: int, value: int | bytes) -> bytes:
    """A field of a protocol buffer."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def block(*fields: tuple[int, int | bytes], payload: bytes = b"") -> bytes:
    description = b"".join(field(*each) for each in [*fields, (5, len(payload))])
    return struct.pack("<I", len(description)) + description + payload


PROCESS = field(1, 4711) + field(2, b"127.0.0.1") + field(3, b"C:\\run\\train.exe")


def report(command: bytes = b"ncu --clock-control none --cache-control=none ./a") -> bytes:
    version = field(1, b"Nsight Compute Target") + field(2, b"2025.1.0.0 (build 1)")
    session = field(2, 1_700_000_000) + field(8, version) + field(11, command)
    head = field(1, 7)
    return (
        b"NVR\0" + struct.pack("<I", len(head)) + head + block((3, session))
        + block((2, 2), (6, PROCESS), payload=b"two results") + block((1, 1), payload=b"x" * 300)
    )  # fmt: skip


def blocks_of(data: bytes) -> ncu_blocks.Report:
    return ncu_blocks.read(io.BytesIO(data))


class TestBlocks:
    def test_what_a_report_says_of_itself(self) -> None:
        found = blocks_of(report())
        assert found.processes == ((4711, "train.exe"),) * 2
        assert (found.tool_version, found.started_at) == ("2025.1.0.0", "2023-11-14T22:13:20Z")
        assert found.options() == {"clock_control": "none", "cache_control": "none"}
        assert blocks_of(report(b"")).options() == {}
        assert blocks_of(report(b'ncu "a --replay-mode range')).options() == {
            "replay_mode": "range"
        }

    def test_every_cut_is_seen(self) -> None:
        whole = report()
        ends = set()
        for length in range(len(whole)):
            try:
                blocks_of(whole[:length])
            except ncu_blocks.BrokenBlockError:
                continue
            ends.add(length)
        assert len(ends) == 3  # between blocks: nothing says how many there are

    @given(st.binary(max_size=300))
    def test_any_bytes(self, data: bytes) -> None:
        for each_ in (data, b"NVR\0" + data, report()[:40] + data):
            with contextlib.suppress(ncu_blocks.BrokenBlockError):
                blocks_of(each_)


def test_a_report_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(report())
    real = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name == "ncu_report":
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.delitem(sys.modules, "ncu_report", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(NeedsExportError, match="not installed") as caught:
        ks.read_counters(path)
    assert "pip install 'kernelscope[ncu]'" in caught.value.hint
    assert "--page raw" in caught.value.hint


@each(counter_files("ncu", ".ncu-rep"))
def test_a_report_cut_between_blocks_is_doubted(trace_file: Path, tmp_path: Path) -> None:
    whole = trace_file.read_bytes()
    assert not ks.read_counters(trace_file).warnings
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes(whole[: _end_of_first_result(whole)])
    (doubt,) = ks.read_counters(path).warnings
    assert "may be cut off" in doubt


def _end_of_first_result(whole: bytes) -> int:
    file = io.BytesIO(whole)
    for fields in ncu_blocks._blocks(file):
        if dict(fields).get(ncu_blocks._RESULTS):
            return file.tell()
    raise AssertionError("a report without a result")


@each(counter_files("ncu", ".ncu-rep"))
def test_a_cut_report(trace_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes(trace_file.read_bytes()[:-1000])
    with pytest.raises(DamagedFileError, match="cut off") as caught:
        ks.read_counters(path)
    assert "Copy it again" in caught.value.hint


class TestRefusals:
    def refused(self, path: Path) -> KernelscopeError:
        with pytest.raises(KernelscopeError) as caught:
            ks.read_counters(path)
        assert str(path) in caught.value.message
        return caught.value

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(TraceFileError, match="No file was named"):
            ks.read_counters()
        with pytest.raises(TraceFileError, match="No file was named"):
            ks.read_counters("")
        assert "There is no file" in self.refused(tmp_path / "none.csv").message
        assert "folder" in self.refused(tmp_path).message
        assert "nsys" not in self.refused(written(tmp_path, "", "empty.csv")).hint
        loop = tmp_path / "loop.csv"
        loop.symlink_to(loop.name)
        assert "a loop of links" in self.refused(loop).message

    @pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
    def test_utf_16_without_a_mark(self, tmp_path: Path, encoding: str) -> None:
        path = tmp_path / "a.csv"
        path.write_bytes(details([(0, "m", "inst", "1", "k")]).encode(encoding))
        error = self.refused(path)
        assert isinstance(error, DamagedFileError)
        assert "zero bytes" in error.message
        assert "iconv" in error.hint

    def test_another_text(self, tmp_path: Path) -> None:
        error = self.refused(written(tmp_path, "Hello\n", "a.txt"))
        assert isinstance(error, NotATraceError)
        assert "ncu --csv" in error.hint

    def test_other_bytes(self, tmp_path: Path) -> None:
        path = tmp_path / "a.bin"
        path.write_bytes(bytes(range(256)) * 20)
        assert isinstance(self.refused(path), NotATraceError)
        path = tmp_path / "a.ncu-rep"
        path.write_bytes(b"\0\1\2")
        assert "does not begin as a report" in self.refused(path).message

    def test_a_file_that_was_never_fetched(self, tmp_path: Path) -> None:
        pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"
        for name in ("a.ncu-rep", "a.csv"):
            assert "git lfs pull" in self.refused(written(tmp_path, pointer, name)).hint

    def test_a_report_of_nsight_systems(self, tmp_path: Path) -> None:
        path = tmp_path / "a.nsys-rep"
        path.write_bytes(b"\0\1\2")
        assert "kernelscope analyze" in self.refused(path).hint

    def test_a_timeline_of_nvprof(self, tmp_path: Path) -> None:
        kernel = {"start": 1, "end": 2, "deviceId": 0, "contextId": 1, "streamId": 7, "name": 1}
        path = nvprof_files.write(tmp_path / "t.nvprof", CONCURRENT_KERNEL=[kernel])
        error = self.refused(path)
        assert isinstance(error, NotRecordedError)
        assert "kernelscope analyze" in error.hint

    @needs_corpus
    def test_a_trace_of_nsight_systems(self) -> None:
        error = self.refused(nsys_traces()[0])
        assert isinstance(error, NotRecordedError)
        assert "kernelscope analyze" in error.hint

    @needs_corpus
    @pytest.mark.parametrize(
        ("start", "word"),
        [("LEGACYBIN", "older binary format"), ("XML_session", "XML"), ("nearlyempty", "empty")],
    )
    def test_other_files_of_nvprof(self, start: str, word: str) -> None:
        files = counter_files("nvprof", ".nvprof") + counter_files("nvprof", ".nvvp")
        [path] = [path for path in files if path.name.startswith(start)]
        error = self.refused(path)
        assert word in error.message
        assert error.hint

    @given(data=st.binary(max_size=400), name=st.sampled_from(["a.csv", "a.nvprof", "a.ncu-rep"]))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
    def test_any_bytes(self, tmp_path: Path, data: bytes, name: str) -> None:
        path = tmp_path / name
        for start in (b"", b'"ID","Process ID",', b'"Device","Kernel","Invocations",', b"\xff\xfe"):
            path.write_bytes(start + data)
            with contextlib.suppress(KernelscopeError):  # and nothing else
                ks.read_counters(path)


def test_recognising_never_raises(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(b"\x1f\x8b\x08 damaged")
    file = CounterFile.open(path)
    assert not any(each_.recognises(file) for each_ in counter_formats.FORMATS)
    for parser in counter_formats.FORMATS:
        assert parser.NAME
        assert parser.DESCRIPTION


@each([path for path in nvprof_traces() if "metrics" in path.name])
def test_executions_of_a_database(trace_file: Path) -> None:
    counted, trace = ks.read_counters(trace_file), ks.read(trace_file)
    executions = counted.executions.records()
    assert [row["kernel_name"] for row in executions] == trace.kernels.texts("name")
    assert [row["duration_ns"] for row in executions] == [
        row["end_ns"] - row["start_ns"] for row in trace.kernels.records()
    ]
    assert {row["device_name"] for row in executions} == {trace.devices.texts("name")[0]}
    assert set(counted.counters.texts("file")) == {str(trace_file)}


class TestMerging:
    def test_replays_of_one_metric_each(self, tmp_path: Path) -> None:
        one = written(
            tmp_path, details([(0, "a__b.sum", "inst", 1), (1, "a__b.sum", "inst", 3)]), "1.csv"
        )
        two = written(tmp_path, details([(0, "dram__bytes.sum", "Kbyte", "2.00")]), "2.csv")
        counted = ks.read_counters(one, two)
        assert counted.sources.values("run") == [0, 1]
        assert counted.counters.values("run") == [0, 0, 1]
        assert counted.counters.texts("file") == [str(one), str(one), str(two)]
        rows = counted.by_kernel().records()
        assert [(r["metric"], r["runs"], r["executions"], r["total"]) for r in rows] == [
            ("a__b.sum", 1, 2, 4), ("dram__bytes.sum", 1, 1, 2000),
        ]  # fmt: skip

    def test_runs_of_the_same_metric_do_not_add_up(self, tmp_path: Path) -> None:
        paths = [
            written(tmp_path, details([(0, "a__b.sum", "inst", n)]), f"{n}.csv") for n in (1, 5)
        ]
        [row] = ks.read_counters(*paths).by_kernel().records()
        assert (row["runs"], row["executions"], row["total"], row["mean"]) == (2, 2, 3, 3)

    def test_a_file_named_twice(self, tmp_path: Path) -> None:
        path = written(tmp_path, details([(0, "a__b.sum", "inst", 1)]))
        counted = ks.read_counters(path, tmp_path / "." / path.name)
        assert len(counted.sources) == 1
        assert "twice" in counted.warnings[0]

    def test_both_tools(self, tmp_path: Path) -> None:
        one = written(tmp_path, details([(0, "a__b.sum", "inst", 1)]), "1.csv")
        two = written(tmp_path, nvprof_summary([("gemm", 4, "inst_executed", 1, 3, 2)]), "2.csv")
        counted = ks.read_counters(one, two)
        assert counted.counters.texts("source") == ["ncu", *["nvprof"] * 3]
        assert counted.by_kernel().values("executions") == [1, 4]

    def test_no_rows(self) -> None:
        assert len(ks.CounterSet().by_kernel()) == 0

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.lists(
            st.lists(
                st.tuples(
                    st.sampled_from(["f", "g"]), st.sampled_from(["(1, 1, 1)", "(2, 1, 1)"]),
                    st.sampled_from(["a.sum", "b.sum"]), st.one_of(st.none(), st.integers(0, 999)),
                ), min_size=1, max_size=12,
            ), min_size=1, max_size=4,
        ), st.booleans(),
    )  # fmt: skip
    def test_against_plain_loops(
        self, tmp_path: Path, runs: list[list[tuple[str, str, str, int | None]]], shapes: bool
    ) -> None:
        paths = []
        for number, rows in enumerate(runs):
            lines = [
                (i, metric, "inst", "n/a" if value is None else value, kernel, grid)
                for i, (kernel, grid, metric, value) in enumerate(rows)
            ]
            paths.append(written(tmp_path, details(lines), f"{number}.csv"))
        ours = {
            (row["kernel_name"], row["grid_x"], row["metric"]): row
            for row in ks.read_counters(*paths).by_kernel(shapes=shapes).records()
        }
        theirs: dict[tuple[Any, ...], list[tuple[int, int | None]]] = defaultdict(list)
        for number, rows in enumerate(runs):
            for kernel, grid, metric, value in rows:
                key = kernel, int(grid[1]) if shapes else None, metric
                theirs[key].append((number, value))
        assert ours.keys() == theirs.keys()
        for key, pairs in theirs.items():
            kept = [value for _, value in pairs if value is not None]
            row = ours[key]
            assert row["executions"] == len(kept)
            assert row["without_value"] == len(pairs) - len(kept)
            assert row["min"] == min(kept, default=None)
            assert row["max"] == max(kept, default=None)
            assert row["mean"] == (pytest.approx(sum(kept) / len(kept)) if kept else None)
            counted = len({run for run, value in pairs if value is not None})
            assert row["runs"] == counted
            whole = len(kept) == len(pairs)  # a sum without one of its terms is none
            assert row["total"] == (pytest.approx(sum(kept) / counted) if whole else None)
