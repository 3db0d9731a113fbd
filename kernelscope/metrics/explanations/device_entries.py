"""Where the time of each GPU goes."""

from __future__ import annotations

from kernelscope.metrics.explanations.entry import CUDA_GUIDE, NSYS, OWN, TBD, Explanation
from kernelscope.metrics.explanations.queries import device_states

_KERNELS = ("kernels.start_ns", "kernels.end_ns", "kernels.process_id", "kernels.device_id",
            "graphs.start_ns", "graphs.end_ns")  # fmt: skip
_ALL = (*_KERNELS, "kernels.name", "copies.start_ns", "copies.end_ns", "copies.kind")
_WINDOW = "the window: the same for all GPUs and processes, and printed with every result"

_C, _M, _G = "compute > 0", "communication > 0", "graph > 0"
_P, _S = "copy > 0", "memset > 0"
_KERNEL = "(compute > 0 OR communication > 0 OR graph > 0)"
_IDLE = "compute + communication + graph + copy + memset = 0"

_PARTITION: tuple[tuple[str, str, str, str], ...] = (
    ("compute_and_communication", "|C ∧ M|", f"{_C} AND {_M}",
     "communication hidden behind compute"),
    ("compute_and_copy", "|C ∧ (P ∨ S) ∧ ¬M|", f"{_C} AND communication = 0 AND ({_P} OR {_S})",
     "copies and memsets hidden behind compute"),
    ("compute_only", "|C ∧ ¬M ∧ ¬P ∧ ¬S|", f"{_C} AND communication + copy + memset = 0",
     "compute with nothing beside it"),
    ("opaque_graph", "|G ∧ ¬C|", f"{_G} AND compute = 0",
     "CUDA graphs traced as one unit: what ran inside is not known"),
    ("communication_only", "|M ∧ ¬C ∧ ¬G|", f"{_M} AND compute + graph = 0",
     "exposed communication, apart from graphs"),
    ("copy_only", "|P ∧ ¬C ∧ ¬M ∧ ¬G|", f"{_P} AND compute + communication + graph = 0",
     "exposed copies"),
    ("memset_only", "|S ∧ ¬C ∧ ¬M ∧ ¬G ∧ ¬P|",
     f"{_S} AND compute + communication + graph + copy = 0", "memsets with nothing beside them"),
)  # fmt: skip
_BUSY = " + ".join(f"partition.{name}_ns" for name, *_ in _PARTITION)

DEVICES = "devices"


def _also(column: str) -> tuple[str, ...]:
    return (f"device_processes.{column}",)


def _edge(key: str, expression: str) -> dict[str, str]:
    """Return the query of what lies between the window's edge and a GPU's work ``k``."""
    return {
        key: f'SELECT d."index",\n  {expression} AS value\n'
        "FROM window AS w CROSS JOIN result_devices AS d\n"
        '  LEFT JOIN device_work AS k ON k.device = d."index"\nGROUP BY 1'
    }


ENTRIES: tuple[Explanation, ...] = (
    Explanation(
        key="gpu_utilization",
        question="In which share of the window did any kernel run on the GPU?",
        formula="|C ∪ M ∪ G| / window = kernel_ns / window_ns",
        unit="ratio",
        denominator=_WINDOW,
        inputs=_KERNELS,
        source=f"{TBD} (GPU compute utilization)",
        pitfalls="Busy is not full: one block on one SM makes it 100 % (see devices.sm_fill). "
        "Communication kernels count, and they spin while they wait for other GPUs.",
        elsewhere="nvidia-smi samples whether a kernel ran, over about a second; Nsight's SMs "
        "Active is a mean over the SMs.",
        numbers="kernel_ns / window_ns",
        of=DEVICES,
        sql={
            "gpu_utilization": 'SELECT device AS "index",\n'
            "  1.0 * sum(s.end_ns - s.start_ns) / w.duration_ns AS value\n"
            f"FROM device_states AS s, window AS w\nWHERE {_KERNEL}\nGROUP BY device"
        },
    ),
    Explanation(
        key="busy_share",
        question="In which share of the window was anything on the GPU?",
        formula="busy_ns / window_ns",
        unit="ratio",
        denominator=_WINDOW,
        inputs=_ALL,
        pitfalls="Copies and memsets count: a GPU that only copies is busy.",
        numbers="busy_ns / window_ns",
        of=DEVICES,
    ),
    Explanation(
        key="devices.window_ns",
        question="How long is the window?",
        formula="end of the window − its start",
        inputs=_ALL,
        pitfalls="From the first to the last CUDA activity of any process unless chosen: setup "
        "and data loading at its edges are in it.",
        numbers="busy_ns + idle_ns",
        sql={"devices.window_ns": 'SELECT "index",\n  w.duration_ns AS value\n'
             "FROM result_devices, window AS w"},
        also=_also("window_ns"),
    ),
    Explanation(
        key="devices.busy_ns",
        question="How long was anything on the GPU?",
        formula="|C ∪ M ∪ P ∪ S ∪ G| = window − idle",
        inputs=_ALL,
        pitfalls="Of the recorded processes: a trace does not show other users of the GPU. "
        "Copies from host to host occupy none; a peer copy occupies both its GPUs.",
        elsewhere="The sum of the executions' durations, as nsys stats totals it, counts "
        "kernels that overlap twice.",
        numbers=_BUSY,
        sql=device_states("devices.busy_ns", f"NOT ({_IDLE})"),
        also=_also("busy_ns"),
    ),
    Explanation(
        key="devices.kernel_ns",
        question="How long did any kernel, or graph traced as one unit, run?",
        formula="|C ∪ M ∪ G|",
        inputs=_KERNELS,
        source=f"{TBD} (GPU-active time)",
        pitfalls="Time, not work: kernels that overlap count once, and how full they make the "
        "GPU is devices.sm_fill. The sum of the kernels' own durations is kernels.total_ns.",
        elsewhere="nsys stats' cuda_gpu_kern_sum sums durations, so its total can exceed the run.",
        numbers=" + ".join(
            f"partition.{name}_ns" for name, *_ in _PARTITION
            if name not in ("copy_only", "memset_only")
        ),
        sql=device_states("devices.kernel_ns", _KERNEL),
        also=_also("kernel_ns"),
    ),
    Explanation(
        key="devices.compute_ns",
        question="How long did any kernel run that is not communication?",
        formula="|C|",
        inputs=(*_KERNELS[:4], "kernels.name"),
        pitfalls="Which kernels communicate is told by their names, from a closed list.",
        numbers="partition.compute_and_communication_ns + partition.compute_and_copy_ns + "
        "partition.compute_only_ns",
        sql=device_states("devices.compute_ns", _C),
        also=_also("compute_ns"),
    ),
    Explanation(
        key="devices.idle_ns",
        question="How long was nothing on the GPU?",
        formula="window − |C ∪ M ∪ P ∪ S ∪ G| = leading + gaps + trailing",
        inputs=_ALL,
        pitfalls="Idle of the recorded processes; unrecorded tenants are invisible.",
        numbers="window_ns - busy_ns",
        sql={"devices.idle_ns": 'SELECT d."index",\n'
             "  w.duration_ns - coalesce(sum(s.end_ns - s.start_ns), 0) AS value\n"
             "FROM window AS w CROSS JOIN result_devices AS d\n"
             '  LEFT JOIN device_states AS s ON s.device = d."index"\n'
             f"  AND NOT ({_IDLE})\nGROUP BY 1"},
        also=_also("idle_ns"),
    ),
    Explanation(
        key="devices.leading_ns",
        question="How long was the GPU idle before its first activity?",
        formula="start of its first activity − start of the window; the whole window without any",
        inputs=_ALL,
        elsewhere="nsys stats' gpu_gaps leaves it out, and so do gap_count and gaps here.",
        sql=_edge("devices.leading_ns", "coalesce(min(k.start_ns) - w.start_ns, w.duration_ns)"),
        also=_also("leading_ns"),
    ),
    Explanation(
        key="devices.trailing_ns",
        question="How long was the GPU idle after its last activity?",
        formula="end of the window − end of its last activity; 0 without any",
        inputs=_ALL,
        elsewhere="nsys stats' gpu_gaps leaves it out, and so do gap_count and gaps here.",
        sql=_edge("devices.trailing_ns", "coalesce(w.end_ns - max(k.end_ns), 0)"),
        also=_also("trailing_ns"),
    ),
    Explanation(
        key="devices.gap_count",
        question="How often was the GPU idle between two activities?",
        formula="number of stretches of ¬(C ∨ M ∨ P ∨ S ∨ G) inside the GPU's first to last "
        "activity",
        unit="count",
        inputs=_ALL,
        pitfalls="A million gaps of 2 µs matter as much as one of two seconds.",
        elsewhere="nsys stats' gpu_gaps lists those above 500 ms only, per process.",
        sql={"devices.gap_count": 'SELECT device AS "index",\n  count(*) AS value\n'
             f"FROM device_states\nWHERE {_IDLE}\nGROUP BY device"},
        also=_also("gap_count"),
    ),
    Explanation(
        key="devices.largest_gap_ns",
        question="How long was the longest pause between two activities?",
        formula="max(start of the next activity − end of all before it)",
        inputs=_ALL,
        pitfalls="Missing where there is no gap. Waiting before the first activity is none.",
        sql={"devices.largest_gap_ns": 'SELECT device AS "index",\n'
             f"  max(end_ns - start_ns) AS value\nFROM device_states\nWHERE {_IDLE}\n"
             "GROUP BY device"},
        also=_also("largest_gap_ns"),
    ),
    Explanation(
        key="devices.sm_fill",
        question="Which share of the GPU's block slots was used while kernels ran, at most?",
        formula="Σ duration · min(1, blocks / (SMs × resident blocks per SM)) / Σ duration, "
        "resident blocks by threads, registers and shared memory",
        unit="ratio",
        denominator="Σ duration of the executions whose fill is known, clipped to the window; "
        "not the window",
        inputs=("kernels.grid_x", "kernels.block_x", "kernels.registers_per_thread",
                "kernels.static_shared_bytes", "kernels.dynamic_shared_bytes", "devices.sm_count",
                "devices.max_blocks_per_sm", "devices.max_warps_per_sm",
                "devices.max_registers_per_sm", "devices.max_shared_bytes_per_sm"),
        source=f"{OWN}; limits from {CUDA_GUIDE}",
        pitfalls="An upper bound: a full GPU may still wait for memory, and the last wave of "
        "blocks leaves SMs empty. Kernels that overlap are weighed each by itself.",
        elsewhere="Nsight's SM Active and achieved occupancy are sampled or counted by the "
        "hardware; est. SM efficiency in the PyTorch profiler is min(blocks / SMs, 1).",
        also=_also("sm_fill"),
    ),
    *(
        Explanation(
            key=f"devices.concurrency.{name}_ns",
            question=f"How long did {words} run at once?",
            formula=f"time with {words} at once, of compute and of communication",
            inputs=_KERNELS[:4],
            pitfalls="At once on the GPU's timeline; whether they share SMs is not recorded. "
            "Graphs traced as one unit are not counted: what runs inside is not known.",
            sql=device_states(f"devices.concurrency.{name}_ns", condition),
            also=_also(f"concurrency.{name}_ns"),
        )
        for name, words, condition in (
            ("one", "exactly one kernel", "compute + communication = 1"),
            ("two", "two kernels", "compute + communication = 2"),
            ("three_or_more", "three or more kernels", "compute + communication >= 3"),
        )
    ),
    *(
        Explanation(
            key=f"devices.partition.{name}_ns",
            question=f"How much of the window is {words}?",
            formula=formula,
            denominator=f"the parts sum to {_WINDOW}",
            inputs=_ALL,
            pitfalls="A partition: each nanosecond is in one class, the first that holds.",
            elsewhere=f"{NSYS} has no such account; HTA's temporal breakdown has compute, "
            "non-compute and idle time.",
            sql=device_states(f"devices.partition.{name}_ns", condition),
            also=_also(f"partition.{name}_ns"),
        )
        for name, formula, condition, words in _PARTITION
    ),
    Explanation(
        key="devices.partition.idle_ns",
        question="How much of the window has nothing on the GPU?",
        formula="¬(C ∨ M ∨ P ∨ S ∨ G)",
        denominator=f"the parts sum to {_WINDOW}",
        inputs=_ALL,
        numbers="idle_ns",
        also=_also("partition.idle_ns"),
    ),
    Explanation(
        key="device_processes.other_process_ns",
        question="How long were only other recorded processes on this process's GPU?",
        formula="|busy of the GPU| − |busy of this process on it|",
        inputs=_ALL,
        pitfalls="Where executions of two processes overlap, their durations may include time "
        "slicing: upper bounds (health: shared_device).",
    ),
    Explanation(
        key="gaps.duration_ns",
        question="How long did nothing run between two activities of a GPU?",
        formula="end_ns − start_ns",
        inputs=_ALL,
        elsewhere="nsys stats' gpu_gaps lists gaps above 500 ms of one process, and counts copies "
        "from host to host as activity.",
        numbers="end_ns - start_ns",
        sql={"gaps.duration_ns": "SELECT device, start_ns, end_ns,\n"
             f"  end_ns - start_ns AS value\nFROM device_states\nWHERE {_IDLE}"},
    ),
    Explanation(
        key="streams.busy_ns",
        question="How long was anything in this CUDA stream on the GPU?",
        formula="|kernels ∪ copies ∪ memsets ∪ graphs of the stream|",
        denominator="reports show it as a share of the window",
        inputs=(*_ALL, "kernels.stream_id", "kernels.context_id"),
        pitfalls="Streams overlap: their busy times sum to more than the GPU's.",
    ),
    Explanation(
        key="streams.exclusive_ns",
        question="How long was this the only busy stream of its GPU?",
        formula="time in which the stream is busy and no other stream of the GPU is",
        inputs=(*_ALL, "kernels.stream_id"),
        pitfalls="What a stream alone occupies is what would be saved at most by overlapping it.",
    ),
    Explanation(
        key="streams.largest_gap_ns",
        question="How long was the longest pause inside this stream?",
        formula="max(start of its next activity − end of all before it)",
        inputs=(*_ALL, "kernels.stream_id"),
        pitfalls="Another stream may have been busy meanwhile; missing with one activity only.",
    ),
)  # fmt: skip
