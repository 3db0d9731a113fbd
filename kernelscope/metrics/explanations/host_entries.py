"""What the host did while the GPUs worked, and while they did not."""

from __future__ import annotations

from kernelscope.metrics.explanations.entry import OWN, TBD, Explanation

_CALLS = ("api_calls.start_ns", "api_calls.end_ns", "api_calls.name", "api_calls.thread_id")
_CORE = ("on_core.start_ns", "on_core.end_ns", "on_core.thread_id")
_DEVICE = ("kernels.start_ns", "kernels.end_ns", "copies.start_ns", "copies.end_ns",
           "graphs.start_ns", "graphs.end_ns")  # fmt: skip
_WAITING = (
    "Waiting is not work: synchronisations whole; copies, memsets, allocations, frees, module "
    "loads and launches beyond their first 50 µs. CUDA spins while it waits, so time on a core "
    "alone is not work"
)
_API_ONLY = (
    "With CUDA calls alone (cpu_source), CPU only and neither are not told apart: cpu_only_ns is "
    "then a lower bound and neither_ns an upper one (cpu_only_high_ns and neither_low_ns are the "
    "other ends where ranges were recorded)"
)
_ELSEWHERE = "Nsight Systems shows both rows, and leaves it to the eye."

_BUSY_SPANS = """WITH busy AS (
  SELECT process_id, thread_id, start_ns, end_ns FROM thread_calls WHERE waits = 0),
spans AS (
  SELECT r.process_id, r.device_id, b.start_ns, b.end_ns, 1 AS host, 0 AS gpu
  FROM result_overlap AS r JOIN busy AS b ON b.process_id IS r.process_id
  UNION ALL
  SELECT o.process_id, o.device_id, k.start_ns, k.end_ns, 0, 1
  FROM result_device_ordinals AS o JOIN device_work AS k
    ON k.device = o."index" AND k.process_id IS o.process_id),
edges AS (
  SELECT process_id, device_id, start_ns AS at, host, gpu FROM spans
  UNION ALL SELECT process_id, device_id, end_ns, -host, -gpu FROM spans),
moments AS (
  SELECT process_id, device_id, at, sum(host) AS host, sum(gpu) AS gpu
  FROM edges GROUP BY 1, 2, 3),
states AS (
  SELECT process_id, device_id, at AS start_ns, lead(at) OVER along AS end_ns,
    sum(host) OVER along AS host, sum(gpu) OVER along AS gpu
  FROM moments WINDOW along AS (PARTITION BY process_id, device_id ORDER BY at))
SELECT r.process_id, r.device_id,
  CASE WHEN r.cpu_source = 'api_calls' THEN {found} ELSE r.{column} END AS value
FROM window AS w CROSS JOIN result_overlap AS r LEFT JOIN states AS s
  ON s.process_id IS r.process_id AND s.device_id = r.device_id AND s.end_ns IS NOT NULL
GROUP BY r.process_id, r.device_id"""
"""What SQL can say of CUDA calls alone; where scheduling was recorded, it repeats what is said."""


def _sql(state: str, condition: str) -> dict[str, str]:
    found = f"coalesce(sum((s.end_ns - s.start_ns) * ({condition})), 0)"
    if state == "neither":
        found = f"w.duration_ns - {found}"
    column = f"{state}_ns"
    return {f"overlap.{column}": _BUSY_SPANS.format(found=found, column=column)}


_STATES: tuple[tuple[str, str, str, str, str], ...] = (
    ("both", "How long did host and GPU work at the same time?", "|CPU busy ∧ GPU busy|",
     f"{_WAITING}.", "s.host > 0 AND s.gpu > 0"),
    ("gpu_only", "How long did the GPU work while the host waited or slept?",
     "|GPU busy ∧ ¬CPU busy|", f"{_WAITING}. Much of it is good: the host is ahead.",
     "s.host = 0 AND s.gpu > 0"),
    ("cpu_only", "How long did the host work while the GPU was idle?",
     "|CPU busy ∧ ¬GPU busy|", f"{_API_ONLY}.", "s.host > 0 AND s.gpu = 0"),
    ("neither", "How long did neither work?", "|¬CPU busy ∧ ¬GPU busy|", f"{_API_ONLY}.",
     "s.host > 0 OR s.gpu > 0"),
)  # fmt: skip


def _rest(state: str, whole: str) -> str:
    others = [f"{name}_ns" for name, *_ in _STATES if name != state]
    return " - ".join([whole, *others])


_BY_THREAD = (
    "SELECT t.process_id, t.thread_id,\n"
    "  CASE WHEN t.cpu_source = 'api_calls' THEN\n"
    "    coalesce(sum((c.end_ns - c.start_ns) * (c.waits = 0)), 0)\n"
    "    ELSE t.busy_ns END AS value\n"
    "FROM result_host_threads AS t LEFT JOIN thread_calls AS c\n"
    "  ON c.process_id IS t.process_id AND c.thread_id IS t.thread_id\n"
    "GROUP BY t.process_id, t.thread_id"
)

ENTRIES: tuple[Explanation, ...] = (
    *(
        Explanation(
            key=f"overlap.{state}_ns",
            question=question,
            formula=f"{formula}; CPU busy is the union over the process's driving threads, those "
            "that were inside a CUDA call in the window; GPU busy is the process's own",
            denominator="the four states of a process and device sum to the window",
            inputs=_CALLS + _CORE + _DEVICE,
            source=f"{OWN}; {TBD} asks how CPU and GPU overlap",
            pitfalls=pitfalls,
            elsewhere=_ELSEWHERE,
            numbers=_rest(state, "window_ns"),
            sql=_sql(state, condition),
        )
        for state, question, formula, pitfalls, condition in _STATES
    ),
    *(
        Explanation(
            key=f"overlap_by_iteration.{state}_ns",
            question=f"{question[:-1]} in this iteration?",
            formula=f"{formula}, inside the iteration's period",
            denominator="the four states sum to period_ns, the period from the trace's first CUDA "
            "activity to its last, inside the window or behind it",
            inputs=_CALLS + _CORE + _DEVICE,
            pitfalls=pitfalls,
            numbers=_rest(state, "period_ns"),
        )
        for state, question, formula, pitfalls, _ in _STATES
    ),
    Explanation(
        key="overlap.cpu_source",
        question="What says when the host was busy?",
        formula="scheduling records where there are any of the thread, else its CUDA calls",
        unit="text",
        inputs=_CALLS + _CORE,
        pitfalls="Of CUDA calls alone a thread that computes in Python is not seen to work: "
        "record nsys profile --cpuctxsw=process-tree.",
    ),
    Explanation(
        key="cpu.utilization",
        question="Which share of the machine's cores did the recorded processes use?",
        formula="Σ time of their threads on cores / (cores × time with scheduling records)",
        unit="ratio",
        denominator="cores × the part of the window in which scheduling was recorded",
        inputs=_CORE[:2],
        source=f"{TBD} (CPU utilization)",
        pitfalls="Only from scheduling records. TBD's own figure saw every process of the machine. "
        "A thread that spins in CUDA is on a core, too. Above 1 the records contradict the number "
        "of cores, and there is no value.",
        elsewhere="top and sar report it of the whole machine, idle processes included.",
        numbers="on_core_ns / (cores * scheduled_ns)",
        sql={
            "cpu.utilization": "WITH used AS (SELECT 1.0 * sum(max(0, min(e.end_ns, w.end_ns) - "
            "max(e.start_ns, w.start_ns)))\n"
            "  / max((SELECT cores FROM result_cpu) * (min(max(e.end_ns), w.end_ns)\n"
            "    - max(min(e.start_ns), w.start_ns)), 0) AS share\n"
            "FROM on_core AS e, window AS w)\n"
            "SELECT CASE WHEN share <= 1 THEN share END AS value FROM used"
        },
    ),
    Explanation(
        key="cpu.on_core_ns",
        question="How long were the recorded threads on processor cores?",
        formula="Σ over threads of their time on a core, clipped to the window",
        inputs=_CORE[:2],
        pitfalls="A sum over threads: two that run at once count twice.",
        sql={
            "cpu.on_core_ns": "SELECT sum(max(0, min(e.end_ns, w.end_ns) - "
            "max(e.start_ns, w.start_ns))) AS value\nFROM on_core AS e, window AS w"
        },
    ),
    Explanation(
        key="host_threads.busy_ns",
        question="How long did this thread work?",
        formula="|time on a core| − |waiting|; of a thread without scheduling records |inside CUDA "
        "calls| − |waiting|",
        inputs=_CALLS + _CORE,
        pitfalls=f"{_WAITING}. Of a thread known by its CUDA calls alone it is a lower bound.",
        sql={"host_threads.busy_ns": _BY_THREAD},
    ),
    Explanation(
        key="host_threads.calls",
        question="How many CUDA calls did this thread make?",
        formula="number of its calls, wrappers apart, that start in the window",
        unit="count",
        inputs=_CALLS,
        elsewhere="nsys stats counts a call and the wrapper around it twice where call chains "
        "were recorded.",
        sql={
            "host_threads.calls": "SELECT e.process_id, e.thread_id,\n  count(*) AS value\n"
            "FROM api_calls AS e, window AS w\nWHERE e.kind <> 'wrapper' AND "
            "e.start_ns >= w.start_ns\n  AND (e.start_ns < w.end_ns OR e.end_ns = w.end_ns)\n"
            "  AND EXISTS (SELECT 1 FROM result_host_threads AS t\n"
            "    WHERE t.process_id IS e.process_id AND t.thread_id IS e.thread_id)\n"
            "GROUP BY e.process_id, e.thread_id"
        },
    ),
    *(
        Explanation(
            key=f"host_threads.waiting.{name}_ns",
            question=f"How long did this thread wait {words}?",
            formula="union of the thread's waits of that kind; a moment in several counts in the "
            "first of synchronization, copy, allocation, module, queue",
            inputs=_CALLS,
            source=f"{OWN}: the list of calls stands in metrics/call_classes.py",
            pitfalls="Told by what the call does and how long it takes, whatever its name says: "
            "an \"asynchronous\" copy of pageable memory waits, too.",
        )
        for name, words in (
            ("synchronization", "in synchronisations"), ("copy", "in copies and memsets"),
            ("allocation", "in allocations and frees"), ("module", "for code to be loaded"),
            ("queue", "for room in the launch queue"),
        )
    ),
)  # fmt: skip
