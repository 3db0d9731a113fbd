"""The helpers that reach the corpus."""

from __future__ import annotations

import pytest

from tests import corpus


@corpus.needs_corpus
def test_the_corpus_has_traces_of_both_profilers() -> None:
    assert len(corpus.nsys_traces()) == 30
    assert len(corpus.nvprof_traces()) == 8


@corpus.needs_corpus
@pytest.mark.parametrize("report", ["cuda_gpu_kern_sum", "cuda_api_trace"])
def test_an_oracle_is_read_packed_or_not(report: str) -> None:
    rows = corpus.oracle("2023.4.4_training_nvtx", report)

    assert len({len(row) for row in rows}) == 1
    assert all(row["Name"] for row in rows)


@corpus.needs_corpus
def test_a_report_tells_which_traces_it_has() -> None:
    stems = {path.stem for path in corpus.nsys_traces_with("cuda_gpu_kern_sum")}

    assert "2023.4.4_training_nvtx" in stems
    assert "2021.3.2_A2000_nokernels" not in stems


@corpus.needs_corpus
@pytest.mark.parametrize("report", ["print-gpu-trace", "summary"])
def test_every_named_nvprof_database_has_its_reports(report: str) -> None:
    for path in corpus.nvprof_traces():
        if path.name.startswith(("GT520M", "nearlyempty")):  # nvprof 11.8 can make nothing of them
            continue
        assert len(corpus.nvprof_oracle(path.stem, report)) > 2


def test_a_missing_oracle_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="no oracle no_such_report of no_such_trace"):
        corpus.nvprof_oracle("no_such_trace", "no_such_report")
    with pytest.raises(FileNotFoundError, match="no oracle no_such_report of no_such_trace"):
        corpus.oracle("no_such_trace", "no_such_report")
