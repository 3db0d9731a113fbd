"""CSV of ncu and nvprof with known answers: units, locales, chatter, what is missing or cut."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kernelscope as ks
from kernelscope.errors import DamagedFileError, NotATraceError
from tests.parsers.counter_texts import (
    CHATTER,
    LONG,
    NCU,
    SUMMARY,
    about,
    details,
    nvprof_summary,
    quoted,
    raw,
    written,
)


def values(path: Path) -> list[tuple[Any, ...]]:
    rows = ks.read_counters(path).counters.records()
    return [(row["metric"], row["value"], row["unit"]) for row in rows]


class TestNcu:
    def test_one_row_has_ms_and_the_next_us(self, tmp_path: Path) -> None:
        text = details([
            (0, "gpu__time_duration.sum", "msecond", "1.50"),
            (1, "gpu__time_duration.sum", "usecond", "1,500.25"),
            (0, "dram__bytes.sum", "Kbyte", "32.77"),
            (1, "dram__bytes.sum", "byte", "32,768"),
            (0, "sm__throughput.avg.pct", "%", "31.28"),
            (0, "clock", "cycle/nsecond", "1.42"),
        ])  # fmt: skip
        counted = ks.read_counters(written(tmp_path, text))
        rows = counted.counters.records()
        assert [(row["value"], row["unit"], row["unit_recorded"]) for row in rows] == [
            (1_500_000, "ns", "msecond"), (1_500_250, "ns", "usecond"), (32_770, "bytes", "Kbyte"),
            (32_768, "bytes", "byte"), (pytest.approx(0.3128), "ratio", "%"),
            (1.42e9, "Hz", "cycle/nsecond"),
        ]  # fmt: skip
        assert [row["rounding"] for row in rows] == pytest.approx(
            [5000, 5, 5, 0, 5e-5, 5e6], rel=1e-12
        )
        assert [row["value_int"] for row in rows] == [None, None, None, 32_768, None, None]
        assert counted.executions.values("duration_ns") == [1_500_000, 1_500_250]

    def test_executions_know_what_a_join_needs(self, tmp_path: Path) -> None:
        text = details([(0, "a__b", "", 1), (1, "a__b", "", 2, "relu", "(1024, 1, 1)")])
        counted = ks.read_counters(written(tmp_path, CHATTER + text))
        first, second = counted.executions.records()
        assert first | {"kernel_name": "gemm"} == first
        assert (first["grid_x"], first["grid_y"], first["grid_z"]) == (4, 2, 1)
        assert (second["kernel_name"], second["grid_x"], second["block_x"]) == ("relu", 1024, 256)
        assert (second["execution"], second["process_id"], second["device_id"]) == (1, 7, 0)
        assert (second["context_id"], second["stream_id"]) == (1, 13)
        assert (second["compute_major"], second["compute_minor"]) == (8, 0)
        [source] = counted.sources.records()
        assert (source["tool"], source["executions"], source["process_name"]) == (
            "ncu",
            2,
            "python",
        )
        assert not counted.warnings

    def test_the_last_kernel_is_there(self, tmp_path: Path) -> None:
        """TBD's analyser loops over range(max(ID)), and drops it."""
        text = raw([("sm__cycles.max", "cycle")], [[100], [200], [300]])
        counted = ks.read_counters(written(tmp_path, text))
        assert counted.counters.values("execution") == [0, 1, 2]
        assert counted.by_kernel().values("total") == [600]

    @pytest.mark.parametrize("cell", ["", "n/a", "nan", "no data", "N/A", "inf", "-"])
    def test_no_value_is_not_0(self, tmp_path: Path, cell: str) -> None:
        text = raw([("x__y.sum", "inst")], [[cell], ["4"]])
        counted = ks.read_counters(written(tmp_path, text))
        first, second = counted.counters.records()
        assert (first["value"], first["value_int"], first["problem"]) == (None, None, "no_value")
        assert (second["value"], second["problem"]) == (4, None)
        [row] = counted.by_kernel().records()
        assert (row["mean"], row["min"], row["executions"], row["without_value"]) == (4, 4, 1, 1)

    def test_texts_stay_texts(self, tmp_path: Path) -> None:
        text = raw([("launch__func_cache_config", "%"), ("x__y", "")], [["PreferNone", "1.2.3,4"]])
        counted = ks.read_counters(written(tmp_path, text))
        name, odd = counted.counters.records()
        assert (name["value_text"], name["value"], name["unit"]) == ("PreferNone", None, None)
        assert (odd["value"], odd["problem"]) == (None, "unreadable")
        assert "1 cell with digits" in counted.warnings[0]
        assert counted.by_kernel().values("metric") == ["x__y"]

    def test_summaries_hold_least_most_and_mean(self, tmp_path: Path) -> None:
        cells = (
            7, "python", "host", "gemm", "(32, 1, 1)", "(8, 1, 1)", 0, "8.0", 100, "Section",
            "dram__sectors_read.sum", "sector", "1,000.00", "3,000.00", "1,500.50",
        )  # fmt: skip
        text = "\n".join([quoted(SUMMARY), quoted(cells)]) + "\n"
        counted = ks.read_counters(written(tmp_path, text))
        rows = counted.counters.records()
        assert [(r["statistic"], r["value"], r["executions"]) for r in rows] == [
            ("min", 1000, 100), ("max", 3000, 100), ("mean", 1500.5, 100),
        ]  # fmt: skip
        [row] = counted.by_kernel(shapes=True).records()
        assert (row["min"], row["max"], row["mean"], row["total"]) == (1000, 3000, 1500.5, 150_050)
        assert (row["grid_x"], row["block_x"], row["executions"]) == (8, 32, 100)
        assert counted.sources.values("summarised") == [True]
        assert counted.executions.values("execution") == [None]

    def test_a_cell_that_is_too_long_for_a_name(self, tmp_path: Path) -> None:
        text = details([(0, "x__y", "", "a" * 200_000), (1, "x__y", "", "5")])
        counted = ks.read_counters(written(tmp_path, text))
        assert counted.counters.values("value") == [5]
        assert "1 line left out" in counted.warnings[0]

    def test_the_rows_of_rules_are_no_counters(self, tmp_path: Path) -> None:
        header = quoted([*LONG, "Rule Name", "Rule Type", "Rule Description"])
        rule = quoted([*about(0), "Occupancy", "", "", "", "Rule", "OPT", 'say "yes",\nor no'])
        row = quoted([*about(0), "Occupancy", "Limit", "block", "16"]) + ","
        counted = ks.read_counters(written(tmp_path, f"{header}\n{rule}\n{row}\n"))
        assert [(r["metric"], r["section"]) for r in counted.counters.records()] == [
            ("Limit", "Occupancy")
        ]

    def test_columns_of_older_versions(self, tmp_path: Path) -> None:
        header = (
            "ID",
            "Process ID",
            "Process Name",
            "Host Name",
            "Kernel Name",
            "Kernel Time",
            "Context",
            "Stream",
            "Section Name",
            "Metric Name",
            "Metric Unit",
            "Metric Value",
        )
        row = (0, 5, "p", "h", "k(int, int)", "2020-Jun-10 02:04:32", 1, 7, "S", "dram__bytes.sum",
               "byte", "1366656")  # fmt: skip
        path = written(tmp_path, f"{quoted(header)}\n{quoted(row)}\n")
        [execution] = ks.read_counters(path).executions.records()
        assert (execution["grid_x"], execution["device_id"]) == (None, None)
        assert execution["started_at"] == "2020-Jun-10 02:04:32"
        assert values(path) == [("dram__bytes.sum", 1_366_656, "bytes")]

    def test_ranges_are_no_metrics(self, tmp_path: Path) -> None:
        header = [*NCU, "thread Domain:Push/Pop_Range:PL_Type", "x__y"]
        lines = [quoted(header), quoted([""] * len(header)), quoted([*about(0), "step 1", 3])]
        path = written(tmp_path, "\n".join(lines) + "\n")
        assert values(path) == [("x__y", 3, None)]

    def test_two_runs_in_one_log_stay_two(self, tmp_path: Path) -> None:
        run = CHATTER + details([(0, "x__y.sum", "inst", 2)])
        counted = ks.read_counters(written(tmp_path, run + "epoch 2" + run))
        assert counted.sources.values("part") == [0, 1]
        assert counted.counters.values("run") == [0, 1]
        [row] = counted.by_kernel().records()
        assert (row["runs"], row["executions"], row["mean"], row["total"]) == (2, 2, 2, 2)

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_encodings_and_line_ends(self, tmp_path: Path, encoding: str, end: str) -> None:
        text = details([(0, "x__y", "inst", "1,024")]).replace("\n", end)
        assert values(written(tmp_path, text, encoding=encoding)) == [("x__y", 1024, "count")]

    def test_compressed_text(self, tmp_path: Path) -> None:
        path = tmp_path / "c.csv.gz"
        packed = gzip.compress(details([(0, "x__y", "inst", "5")]).encode())
        path.write_bytes(packed)
        assert values(path) == [("x__y", 5, "count")]
        path.write_bytes(packed[:-20])
        with pytest.raises(DamagedFileError, match="cut off"):
            ks.read_counters(path)

    def test_a_header_behind_an_unfinished_line(self, tmp_path: Path) -> None:
        text = "loss 0.25 " + details([(0, "x__y", "inst", "5")])
        assert values(written(tmp_path, text)) == [("x__y", 5, "count")]

    def test_what_the_program_prints_afterwards(self, tmp_path: Path) -> None:
        text = details([(0, "x__y", "inst", "5")]) + '"done", she said\nIt\'s "over\n,\n'
        assert values(written(tmp_path, text)) == [("x__y", 5, "count")]

    @pytest.mark.parametrize("cut", [2, 30, 60])
    def test_a_cut_text(self, tmp_path: Path, cut: int) -> None:
        text = details([(0, "x__y", "inst", "5,000"), (1, "x__y", "inst", "6,000")])
        with pytest.raises(DamagedFileError, match="line 3") as caught:
            ks.read_counters(written(tmp_path, text[:-cut]))
        assert "ncu --import" in caught.value.hint

    @pytest.mark.parametrize("page", [0, 1])
    def test_a_header_alone(self, tmp_path: Path, page: int) -> None:
        text = quoted(LONG if page else [*NCU, "x__y"]) + "\n"
        with pytest.raises(NotATraceError, match="no kernel was profiled"):
            ks.read_counters(written(tmp_path, text))
        with pytest.raises(DamagedFileError, match="header"):
            ks.read_counters(written(tmp_path, '"ID","Process ID","Process Na'))


class TestNvprof:
    def test_levels(self, tmp_path: Path) -> None:
        """TBD's tool reads one character, and `Max (10)` as 0; empty cells count as level 0."""
        text = nvprof_summary([
            ("a", 1, "fu", "Max (10)", "Max (10)", "Max (10)"),
            ("b", 1, "fu", "Low (2)", "Mid (4)", "Low (3)"),
            ("c", 1, "fu", "", "", ""), ("d", 1, "fu", "Idle (0)", "Max", "Idle"),
        ])  # fmt: skip
        counted = ks.read_counters(written(tmp_path, text))
        rows = {row["kernel_name"]: row for row in counted.by_kernel().records()}
        assert (rows["a"]["mean"], rows["a"]["unit"]) == (10, "level")
        assert (rows["b"]["min"], rows["b"]["max"], rows["b"]["mean"]) == (2, 4, 3)
        assert (rows["c"]["mean"], rows["c"]["executions"], rows["c"]["without_value"]) == (
            None,
            0,
            3,
        )
        assert (rows["d"]["min"], rows["d"]["max"], rows["d"]["mean"]) == (0, 10, 0)
        assert {row["total"] for row in rows.values()} == {None}

    def test_units_stand_in_the_cells(self, tmp_path: Path) -> None:
        text = nvprof_summary([
            ("a", 3, "gld_throughput", "1.5KB/s", "2GB/s", "1.000000GB/s"),
            ("a", 3, "sm_efficiency", "50.000000%", "99.5%", "75.25%"),
            ("a", 3, "dram_read_bytes", 32, 96, 64),
            ("a", 3, "achieved_occupancy", "0.500000", "1.500000", "1.0"),
            ("a", 3, "of_another_chip", 32, 96, 64),
        ])  # fmt: skip
        rows = {
            r["metric"]: r for r in ks.read_counters(written(tmp_path, text)).by_kernel().records()
        }
        assert [rows["gld_throughput"][n] for n in ("min", "max", "mean")] == [1536, 2**31, 2**30]
        assert rows["sm_efficiency"]["mean"] == pytest.approx(0.7525)
        assert (rows["sm_efficiency"]["unit"], rows["dram_read_bytes"]["unit"]) == (
            "ratio",
            "bytes",
        )
        assert rows["dram_read_bytes"]["total"] == 192
        assert (rows["achieved_occupancy"]["unit"], rows["of_another_chip"]["unit"]) == ("1", None)

    def test_means_of_counts_are_cut_off(self, tmp_path: Path) -> None:
        path = written(tmp_path, nvprof_summary([("a", 3, "inst_executed", 32, 96, 64)]))
        rows = ks.read_counters(path).counters.records()
        assert [(r["statistic"], r["value_int"], r["rounding"]) for r in rows] == [
            ("min", 32, 0), ("max", 96, 0), ("mean", None, 1),
        ]  # fmt: skip

    def test_events_have_totals(self, tmp_path: Path) -> None:
        path = written(tmp_path, nvprof_summary([("a", 3, "warps", 1, 3, 2, 7)], "Event"))
        counted = ks.read_counters(path)
        assert [(r["statistic"], r["value"]) for r in counted.counters.records()] == [
            ("min", 1), ("max", 3), ("mean", 2), ("sum", 7),
        ]  # fmt: skip
        assert counted.executions.records()[0]["device_id"] == 1

    @pytest.mark.parametrize(
        ("cell", "problem"),
        [("<OVERFLOW>", "overflow"), ("overflow", "overflow"), ("<INVALID>", "invalid"),
         ("nan", "no_value"), ("1.2.3", "unreadable")],
    )  # fmt: skip
    def test_what_cannot_be_trusted(self, tmp_path: Path, cell: str, problem: str) -> None:
        text = nvprof_summary([("a", 1, "flop_count_sp", f" {cell}", f" {cell}", f" {cell}")])
        rows = ks.read_counters(written(tmp_path, text)).counters.records()
        assert {(row["value"], row["problem"]) for row in rows} == {(None, problem)}

    def test_every_sm_by_itself(self, tmp_path: Path) -> None:
        text = nvprof_summary([("a", 2, "sm_efficiency (3 instances)", "", "", "30.5%,0.0%,10%")])
        counted = ks.read_counters(written(tmp_path, text))
        rows = [row for row in counted.counters.records() if row["value"] is not None]
        assert [(r["metric"], r["instance"], r["value"]) for r in rows] == [
            ("sm_efficiency", 0, 0.305), ("sm_efficiency", 1, 0), ("sm_efficiency", 2, 0.1),
        ]  # fmt: skip
        [row] = counted.by_kernel().records()
        assert (row["mean"], row["executions"]) == (pytest.approx(0.135), 2)

    def test_a_row_per_execution(self, tmp_path: Path) -> None:
        text = CHATTER + (
            "==9== Profiling result:\n"
            '"Device","Context","Stream","Kernel","Correlation_ID",'
            '"gld_throughput","fu","sm (0)","sm (1)"\n'
            ",,,,,GB/s,,%,%\n"
            '"V100 (0)","1","7","f(int, int)",12,2.000000,"Max (10)",50.0,0.0\n'
            '"V100 (0)","1","7","f(int, int)",15,,"Low (1)",25.0,0.0\n'
            "==9== PC SAMPLING SUMMARY:\nf(int, int)\n"
            '"PC","INVALID","NONE","INST_FETCH","EXEC_DEP","MEM_DEP","TEXTURE","SYNC","OTHER"\n'
            '"0x10",0,1,0,27,0,0,0,0\n'
        )
        counted = ks.read_counters(written(tmp_path, text))
        assert counted.executions.values("correlation_id") == [12, 15]
        rows = counted.counters.records()
        assert [(row["metric"], row["instance"], row["value"]) for row in rows] == [
            ("gld_throughput", None, 2**31), ("fu", None, 10), ("sm", 0, 0.5), ("sm", 1, 0),
            ("gld_throughput", None, None), ("fu", None, 1), ("sm", 0, 0.25), ("sm", 1, 0),
        ]  # fmt: skip

    def test_times_of_kernels_only(self, tmp_path: Path) -> None:
        text = (
            '==1== Profiling result:\n"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n'
            ",%,ms,,us,us,ms,\n"
            '"GPU activities",43.9,2.670947,101,26.445000,25.983000,0.027104,"f(int)"\n'
            '"GPU activities",43.5,2.645669,2,1322.8,687.129,1.958540,"[CUDA memcpy DtoH]"\n'
            '"API calls",13,1,1,1,1,1,"cudaLaunchKernel"\n'
        )
        counted = ks.read_counters(written(tmp_path, text))
        [row] = counted.by_kernel().records()
        assert (row["kernel_name"], row["executions"], row["unit"]) == ("f(int)", 101, "ns")
        assert [row[n] for n in ("mean", "min", "max", "total")] == pytest.approx(
            [26_445, 25_983, 27_104, 2_670_947]
        )
        assert counted.executions.values("duration_ns") == [26_445]

    def test_a_cut_text(self, tmp_path: Path) -> None:
        text = nvprof_summary([("a", 3, "inst_executed", 32, 96, 64)])
        with pytest.raises(DamagedFileError, match="line 3"):
            ks.read_counters(written(tmp_path, text[:-6]))
        with pytest.raises(DamagedFileError, match="line 3"):
            ks.read_counters(written(tmp_path, text[: 30 + text.index("Tesla")]))
        counted = ks.read_counters(written(tmp_path, text[:-2]))
        assert "may be cut off" in counted.warnings[0]

    def test_a_timeline_as_text(self, tmp_path: Path) -> None:
        text = '"Start","Duration","Grid X"\nns,ns,\n0,1472.0,4\n'
        with pytest.raises(NotATraceError, match="timeline") as caught:
            ks.read_counters(written(tmp_path, text))
        assert "kernelscope analyze" in caught.value.hint


NUMBERS = st.integers(0, 10**12)
UNITS = {"": 1, "inst": 1, "byte": 1, "Kbyte": 10**3, "Mbyte": 10**6, "usecond": 10**3}
LINES = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='",'), max_size=40
)
LOCALES = {",": ".", ".": ",", "\u202f": ",", " ": ".", "": "."}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["gemm", "relu<int, 4>(a, b)"]), NUMBERS, st.sampled_from([*UNITS])
        ),
        min_size=1, max_size=12,
    ),
    apart=st.sampled_from([*LOCALES]), chatter=st.lists(LINES, max_size=5),
    wide=st.booleans(), windows=st.booleans(),
)  # fmt: skip
def test_any_text_of_ncu_reads_back(
    tmp_path: Path, *, rows: list[tuple[str, int, str]], apart: str, chatter: list[str],
    wide: bool, windows: bool,
) -> None:  # fmt: skip
    def shown(number: int) -> str:
        whole = f"{number // 100:,}".replace(",", apart)
        return f"{whole}{LOCALES[apart]}{number % 100:02d}"

    if wide:
        units = dict.fromkeys(unit for _, _, unit in rows)
        metrics = [(f"m__{unit or 'none'}", unit) for unit in units]
        cells = [[shown(n) if u == unit else "n/a" for unit in units] for _, n, u in rows]
        text = raw(metrics, cells)
    else:
        text = details([(i, "m__x", u, shown(n), k) for i, (k, n, u) in enumerate(rows)])
    noise = "".join(f"{line}\n" for line in chatter)
    text = noise + text + noise
    path = written(tmp_path, text.replace("\n", "\r\n") if windows else text)
    counted = ks.read_counters(path)
    found = [row for row in counted.counters.records() if row["value"] is not None]
    assert [row["execution"] for row in found] == list(range(len(rows)))
    for row, (kernel, number, unit) in zip(found, rows, strict=True):
        assert row["value"] == pytest.approx(number * UNITS[unit] / 100, rel=1e-12)
        assert (row["unit_recorded"] or "") == unit
        assert row["rounding"] == pytest.approx(UNITS[unit] / 200)
        assert wide or row["kernel_name"] == kernel
