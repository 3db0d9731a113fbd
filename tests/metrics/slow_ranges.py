"""NVTX attribution once more, in plain loops over dictionaries: slow, and easy to believe.

Written from the definitions, not from the library's code. Times are small, so that a union is a
set of nanoseconds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kernelscope.metrics.inheritance import FEWEST_INSTANCES
from kernelscope.metrics.iteration_family import fold
from kernelscope.metrics.library_domains import is_data_pipeline, is_library

Row = dict[str, Any]
Thread = tuple[int, int]


def thread_of(row: Row) -> Thread:
    return row["process_id"], row["thread_id"]


@dataclass
class Slow:
    """A trace as lists of dictionaries, and the rules to apply."""

    ranges: list[Row]
    api_calls: list[Row]
    kernels: list[Row]
    copies: list[Row]
    graphs: list[Row] = field(default_factory=list)
    family: list[int] | None = None
    twins: list[list[int]] = field(default_factory=list)
    phases: bool = True
    strict: bool = False
    process_ranges: bool = False
    window: tuple[int, int] = (0, 10**6)
    known: dict[Any, Any] = field(default_factory=dict, repr=False)

    # ---- nesting ---------------------------------------------------------------------------

    def opened_before(self, a: int, b: int) -> bool:
        """Whether range a comes before range b: it starts earlier, or lasts longer, or is first."""
        one, two = self.ranges[a], self.ranges[b]
        return bool((one["start_ns"], -one["end_ns"], a) < (two["start_ns"], -two["end_ns"], b))

    def same_stack(self, a: int, b: int) -> bool:
        one, two = self.ranges[a], self.ranges[b]
        return thread_of(one) == thread_of(two) and one["domain"] == two["domain"]

    def lasting(self, a: int) -> bool:
        row = self.ranges[a]
        return bool(row["style"] == "push_pop" and row["end_ns"] > row["start_ns"])

    @cached_property
    def crossing(self) -> list[bool]:
        def crosses(a: int) -> bool:
            row = self.ranges[a]
            return self.lasting(a) and any(
                self.lasting(b)
                and self.same_stack(a, b)
                and self.opened_before(b, a)
                and row["start_ns"] < self.ranges[b]["end_ns"] < row["end_ns"]
                for b in range(len(self.ranges))
            )

        return [crosses(a) for a in range(len(self.ranges))]

    @cached_property
    def on_stack(self) -> list[bool]:
        return [self.lasting(a) and not self.crossing[a] for a in range(len(self.ranges))]

    def last_opened(self, rows: list[int]) -> int:
        found = -1
        for row in rows:
            if found < 0 or self.opened_before(found, row):
                found = row
        return found

    @cached_property
    def parent(self) -> list[int]:
        def encloses(outer: int, inner: int) -> bool:
            one, two = self.ranges[outer], self.ranges[inner]
            if not self.on_stack[outer] or not self.same_stack(outer, inner):
                return False
            if one["start_ns"] > two["start_ns"]:
                return False
            if two["end_ns"] == two["start_ns"]:
                return bool(two["start_ns"] < one["end_ns"])
            return self.opened_before(outer, inner) and bool(one["end_ns"] >= two["end_ns"])

        everything = range(len(self.ranges))
        return [
            self.last_opened([outer for outer in everything if encloses(outer, inner)])
            if self.on_stack[inner]
            or (
                self.ranges[inner]["style"] == "push_pop"
                and self.ranges[inner]["start_ns"] == self.ranges[inner]["end_ns"]
            )
            else -1
            for inner in everything
        ]

    def chain(self, row: int) -> list[int]:
        """The range and all that enclose it, inside first."""
        rows = []
        while row >= 0:
            rows.append(row)
            row = self.parent[row]
        return rows

    # ---- launches --------------------------------------------------------------------------

    def launch(self, work: Row) -> int:
        found = -1
        for number, call in enumerate(self.api_calls):
            same = (call["process_id"], call["correlation_id"]) == (
                work["process_id"],
                work["correlation_id"],
            )
            if (
                same
                and call["kind"] != "wrapper"
                and (found < 0 or call["start_ns"] >= self.api_calls[found]["start_ns"])
            ):
                found = number
        return found

    @cached_property
    def launching(self) -> set[int]:
        return {self.launch(work) for _, work in self.all_work()} - {-1}

    def launches_graph(self, number: int) -> bool:
        """Whether a call launched a CUDA graph: by its name, or because one came of it."""
        named = self.api_calls[number]["name"] == "cudaGraphLaunch"
        return named or any(self.launch(graph) == number for graph in self.seen_graphs)

    @property
    def seen_graphs(self) -> list[Row]:
        """Opaque graphs, which nsys does not project."""
        return [] if self.strict else self.graphs

    # ---- what holds a call -----------------------------------------------------------------

    def holds(self, row: int, number: int) -> bool:
        """Whether a range, taken by itself, holds a call."""
        item, call = self.ranges[row], self.api_calls[number]
        wide = self.process_ranges and item["style"] == "start_end"
        if wide and item["process_id"] != call["process_id"]:
            return False
        if not wide and thread_of(item) != thread_of(call):
            return False
        if not item["start_ns"] <= call["start_ns"] < item["end_ns"]:
            return False
        if self.strict:
            crossed = item["style"] == "start_end" and item["end_thread_id"] is not None
            return bool(call["end_ns"] <= item["end_ns"]) and not crossed
        return True

    def holders(self, number: int) -> list[int]:
        """All ranges that hold a call."""
        if ("holders", number) not in self.known:
            rows = range(len(self.ranges))
            self.known["holders", number] = [row for row in rows if self.holds(row, number)]
        return list(self.known["holders", number])

    def innermost(self, number: int, domain: str) -> int:
        return self.last_opened(
            [
                row
                for row in self.holders(number)
                if self.on_stack[row] and self.ranges[row]["domain"] == domain
            ]
        )

    # ---- iterations ------------------------------------------------------------------------

    def family_of(self, process: int) -> list[int] | None:
        """The iterations of a process: rows of ranges in order of time."""
        for family in (self.family, *self.twins):
            if family and self.ranges[family[0]]["process_id"] == process:
                return family
        return None

    def annotator(self, family: list[int]) -> Thread:
        return thread_of(self.ranges[family[0]])

    def periods(self, family: list[int]) -> list[tuple[int, int, int]]:
        """Start, end of the range, end of the period."""
        rows = [self.ranges[row] for row in family]
        ends = [row["start_ns"] for row in rows[1:]] + [row["end_ns"] for row in rows[-1:]]
        return [(row["start_ns"], row["end_ns"], end) for row, end in zip(rows, ends, strict=True)]

    def several(self, family: list[int]) -> bool:
        first = self.ranges[family[0]]
        times: dict[Thread, list[tuple[int, int]]] = defaultdict(list)
        for row in self.ranges:
            if (
                row["process_id"] == first["process_id"]
                and row["thread_id"] != first["thread_id"]
                and fold(row["name"]) == fold(first["name"])
                and not is_library(row["domain"])
            ):
                times[thread_of(row)].append((row["start_ns"], row["end_ns"]))
        return any(
            len(mine) >= FEWEST_INSTANCES
            and all(a[1] <= b[0] or b[1] <= a[0] for i, a in enumerate(mine) for b in mine[i + 1 :])
            for mine in times.values()
        )

    def serves_pipeline(self, number: int) -> bool:
        def under(each: int) -> bool:
            return any(
                self.on_stack[row] and is_data_pipeline(self.ranges[row]["domain"])
                for row in self.holders(each)
            )

        if under(number):
            return True
        thread = thread_of(self.api_calls[number])
        family = self.family_of(thread[0])
        if family and thread == self.annotator(family):
            return False
        mine = [each for each in self.launching if thread_of(self.api_calls[each]) == thread]
        return 2 * sum(under(each) for each in mine) > len(mine)

    def open_phase(self, family: list[int], time: int) -> int:
        for row in range(len(self.ranges)):
            item = self.ranges[row]
            if (
                self.on_stack[row]
                and self.parent[row] in family
                and item["start_ns"] <= time < item["end_ns"]
            ):
                return row
        return -1

    def belongs(self, number: int) -> tuple[str, int, int, int, str]:
        """How, iteration, phase, inherited range, and why not, of a launching call."""
        if ("belongs", number) not in self.known:
            self.known["belongs", number] = self._belongs(number)
        found: tuple[str, int, int, int, str] = self.known["belongs", number]
        return found

    def _belongs(self, number: int) -> tuple[str, int, int, int, str]:  # noqa: PLR0911
        call = self.api_calls[number]
        thread, time = thread_of(call), call["start_ns"]
        graph = self.launches_graph(number)
        if self.family is None:
            if self.holders(number):
                return ("graph" if graph else "direct"), -1, -1, -1, ""
            return "none", -1, -1, -1, self.place(number)
        family = self.family_of(thread[0])
        if family is None:
            return "none", -1, -1, -1, "another_process"
        annotator = self.annotator(family)
        if thread != annotator and self.several(family):
            return "none", -1, -1, -1, "several_annotating_threads"
        for row, (start, range_end, end) in zip(family, self.periods(family), strict=True):
            if not start <= time < end:
                continue
            index = family.index(row) if family is self.family else -1
            if thread == annotator and time < range_end:
                phase = self.open_phase(family, time)
                return ("graph" if graph else "direct"), index, phase, -1, ""
            if self.serves_pipeline(number):
                return "concurrent", index, -1, row, ""
            busy = any(
                thread_of(other) == annotator and other["start_ns"] <= time < other["end_ns"]
                for other in self.api_calls
            )
            phase = -1
            if self.phases and thread != annotator and not busy:
                phase = self.open_phase(family, time)
            return "inherited", index, phase, phase if phase >= 0 else row, ""
        return "none", -1, -1, -1, "outside_iterations"

    def place(self, number: int) -> str:
        thread = thread_of(self.api_calls[number])
        if any(thread_of(row) == thread for row in self.ranges):
            return "between_ranges"
        return "no_range_on_thread"

    # ---- tables ----------------------------------------------------------------------------

    def ranges_of(self, number: int) -> dict[int, str]:
        """Every range that a launching call belongs to, and how."""
        how, _, _, inherited, _ = self.belongs(number)
        graph = self.launches_graph(number)
        found = dict.fromkeys(self.holders(number), "graph" if graph else "direct")
        for row in self.chain(inherited):
            found.setdefault(row, how)
        return found

    def style(self, row: int) -> str:
        return "crossing" if self.crossing[row] else str(self.ranges[row]["style"])

    def path(self, row: int) -> tuple[Any, ...]:
        item = self.ranges[row]
        names = tuple(self.ranges[each]["name"] for each in self.chain(row)[::-1])
        return names, item["domain"], self.style(row), item["process_id"]

    def name(self, row: int) -> tuple[Any, ...]:
        item = self.ranges[row]
        return item["name"], item["domain"], self.style(row), item["process_id"]

    def inside(self, event: Row) -> set[int]:
        """The event's nanoseconds in the window."""
        low, high = self.window
        return set(range(max(event["start_ns"], low), min(event["end_ns"], high)))

    def counted(self, event: Row) -> bool:
        low, high = self.window
        at_end = event["start_ns"] == event["end_ns"] == high
        return bool(low <= event["start_ns"] < high or at_end)

    def table(self, by_name: bool) -> dict[tuple[Any, ...], Row]:
        """The range table, by path or by name."""
        key = self.name if by_name else self.path
        rows: dict[tuple[Any, ...], Row] = {}
        for row, item in enumerate(self.ranges):
            mine = rows.setdefault(key(row), {"busy": set()})
            mine["instances"] = mine.get("instances", 0) + self.counted(item)
            mine["host_ns"] = mine.get("host_ns", 0) + len(self.inside(item))
        for kind, work in self.all_work():
            number = self.launch(work)
            if number < 0:
                continue
            hows: dict[tuple[Any, ...], str] = {}
            for row, how in self.ranges_of(number).items():
                if hows.get(key(row)) not in {"direct", "graph"}:
                    hows[key(row)] = how
            for where, how in hows.items():
                rows[where]["busy"] |= self.inside(work)
                if kind == "kernel":
                    self.add_kernel(rows[where], work, how)
                if kind == "graph":
                    opaque = rows[where].get("opaque_ns", 0)
                    rows[where]["opaque_ns"] = opaque + len(self.inside(work))
        return rows

    def all_work(self) -> list[tuple[str, Row]]:
        kinds = {"kernel": self.kernels, "copy": self.copies, "graph": self.seen_graphs}
        return [(kind, row) for kind, rows in kinds.items() for row in rows]

    def add_kernel(self, row: Row, kernel: Row, how: str) -> None:
        for name, value in (
            ("kernels", int(self.counted(kernel))),
            (how, int(self.counted(kernel))),
            ("kernel_ns", len(self.inside(kernel))),
            ("inherited_ns", len(self.inside(kernel)) * (how in {"inherited", "concurrent"})),
        ):
            row[name] = row.get(name, 0) + value

    def projection(self, row: int) -> tuple[int, int] | None:
        """First start and last end, in the window, of what one range launched."""
        low, high = self.window
        times = []
        for _, work in self.all_work():
            number = self.launch(work)
            if number < 0 or row not in self.ranges_of(number):
                continue
            if self.inside(work) or self.counted(work):
                times.append((max(work["start_ns"], low), min(work["end_ns"], high)))
        return (min(t[0] for t in times), max(t[1] for t in times)) if times else None

    def instance(self, row: int) -> dict[str, int]:
        """What one range launched: calls anywhere in time, operations that start in the window."""
        numbers = [number for number in self.launching if row in self.ranges_of(number)]
        kernels = [kernel for kernel in self.kernels if self.launch(kernel) in numbers]
        others = [work for work in self.copies + self.seen_graphs if self.launch(work) in numbers]
        return {
            "launches": len(numbers),
            "operations": sum(self.counted(work) for work in kernels + others),
            "kernels": sum(self.counted(kernel) for kernel in kernels),
            "kernel_ns": sum(len(self.inside(kernel)) for kernel in kernels),
        }

    def unattributed(self) -> Counter[tuple[str | None, str, str]]:
        """Kernels and ns in no range, and in none of each domain's stacks, by reason."""
        found: Counter[tuple[str | None, str, str]] = Counter()
        domains = {row["domain"] for row in self.ranges if row["style"] == "push_pop"}
        for kernel in self.kernels:
            number = self.launch(kernel)
            for domain in (None, *domains):
                reason = self.why_not(number, domain)
                if reason:
                    found[domain, reason, "kernels"] += self.counted(kernel)
                    found[domain, reason, "total_ns"] += len(self.inside(kernel))
        for graph in self.seen_graphs:
            for domain in (None, *domains):
                reason = self.why_not(self.launch(graph), domain)
                if reason:
                    found[domain, reason, "opaque_ns"] += len(self.inside(graph))
        return +found

    def why_not(self, number: int, domain: str | None) -> str:
        if number < 0:
            return "no_launch_row"
        _, _, _, inherited, reason = self.belongs(number)
        if domain is None and (self.holders(number) or inherited >= 0):
            return ""
        if domain is not None and self.innermost(number, domain) >= 0:
            return ""
        if inherited >= 0 and self.ranges[inherited]["domain"] == domain:
            return ""
        own = self.family is not None and domain in {None, self.ranges[self.family[0]]["domain"]}
        if own and reason in {"several_annotating_threads", "outside_iterations"}:
            return reason
        return self.place(number)

    def self_kernel_ns(self) -> Counter[tuple[Any, ...]]:
        """Kernel time by the innermost path of each domain."""
        found: Counter[tuple[Any, ...]] = Counter()
        for kernel in self.kernels:
            number = self.launch(kernel)
            if number < 0:
                continue
            inherited = self.belongs(number)[3]
            for domain in {row["domain"] for row in self.ranges}:
                row = self.innermost(number, domain)
                if row < 0 and inherited >= 0 and self.ranges[inherited]["domain"] == domain:
                    row = inherited
                if row >= 0:
                    found[self.path(row)] += len(self.inside(kernel))
        return found
