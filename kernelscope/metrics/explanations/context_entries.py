"""What stands around the tables: the window, the capture, the iterations that were found."""

from __future__ import annotations

from collections.abc import Iterable

from kernelscope.metrics.explanations.entry import OWN, Explanation, Worked

FACT = "What does it hold?"
"""The question of what is no number: a listing says what it holds instead."""

_EVENTS = ("kernels.start_ns", "copies.start_ns", "graphs.start_ns", "api_calls.start_ns")

_FACTS: tuple[tuple[str, str, str], ...] = (
    ("schema_version", "count", "version of the JSON's names: raised when one changes its meaning"),
    ("capture.file", "text", "the path as given"),
    ("capture.format", "text", "which profiler's file it is"),
    ("capture.profiler_version", "text", "as recorded; null where the file does not say"),
    ("capture.schema", "text", "version of the export's tables, as recorded"),
    ("capture.started_at", "text", "wall-clock time of the trace's zero, ISO 8601 in UTC"),
    ("capture.recorded", "text", "canonical tables that the capture holds, empty ones included"),
    ("capture.not_recorded", "text", "the others, with the profiler's flag that records them"),
    ("capture.cpu_cores", "count", "processor cores of the machine; null where the file does not "
     "say"),
    ("capture.serialised", "text", "why kernels ran one after the other, as they do not without "
     "the profiler; null for a run as it is"),
    ("iterations.family", "text", "the iterations' range name, digits folded; or the unit that "
     "repeats in the kernel sequence"),
    ("iterations.domain", "text", "their NVTX domain"),
    ("iterations.process_id", "id", "the process whose ranges they are"),
    ("iterations.thread_id", "id", "the thread whose ranges they are"),
    ("iterations.source", "text", "nvtx, kernel_sequence or user: how they were found"),
    ("iterations.runner_up", "text", "the family that would be next, and its score"),
    ("iterations.also_in", "text", "other threads with the same ranges: other ranks"),
    ("iterations.count", "count", "iterations in the window, the last of the trace included"),
    ("iterations.warmup", "id", "numbers of the warm-up iterations: a prefix, at most half"),
    ("iterations.outliers", "id", "numbers of isolated outliers, fewer than 5 % in all"),
    ("iterations.kernel_sequence", "text", "what repeats in the kernel sequence, beside the "
     "markers: name, count, median_ns, confidence, and whether it agrees"),
    ("iterations.notes", "text", "what a reader must know of them"),
    ("launches.reason", "text", "why no launch can be followed from its call to its execution; "
     "null where some can"),
    ("window.chosen_by", "text", "how the window was chosen"),
)  # fmt: skip


def _facts() -> Iterable[Explanation]:
    for key, unit, meaning in _FACTS:
        yield Explanation(key=key, question=FACT, formula=meaning, unit=unit)


ENTRIES: tuple[Explanation, ...] = (
    Explanation(
        key="window.duration_ns",
        question="How long is the stretch that every figure speaks of?",
        formula="window end − window start",
        inputs=_EVENTS,
        source=OWN,
        pitfalls="One window for all GPUs and processes, from the first to the last device "
        "activity or CUDA call unless chosen (--between, --only, --range): never trimmed silently. "
        "Totals are clipped to it; counts and statistics are of events that start in it.",
        numbers=lambda analysis: [
            Worked(
                analysis.window.chosen_by,
                f"{analysis.window.end_ns:,} - {analysis.window.start_ns:,}",
                analysis.window.duration_ns,
            )
        ],
        sql={
            "window.duration_ns": "WITH events AS (\n"
            "  SELECT start_ns, end_ns FROM kernels\n"
            "  UNION ALL SELECT start_ns, end_ns FROM copies\n"
            "  UNION ALL SELECT start_ns, end_ns FROM graphs\n"
            "  UNION ALL SELECT start_ns, end_ns FROM api_calls)\n"
            "SELECT max(end_ns) - min(start_ns) AS value FROM events"
        },
        sql_whole=True,
    ),
    Explanation(
        key="window.start_ns",
        question="Where does the window begin, on the trace's clock?",
        formula="earliest start of a device activity or CUDA call, unless chosen",
        inputs=_EVENTS,
    ),
    Explanation(
        key="window.end_ns",
        question="Where does the window end, on the trace's clock?",
        formula="latest end of a device activity or CUDA call, unless chosen",
        inputs=_EVENTS,
    ),
    *_facts(),
)
