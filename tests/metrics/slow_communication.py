"""Communication once more, in plain loops over dictionaries: slow, and easy to believe.

Written from the definitions, not from the library's code. Times are small, so that a union is a
set of nanoseconds, and every thread's NCCL ranges are told one after another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Key = tuple[int, int, str]

CALLS = {
    "ncclAllReduce": "all_reduce",
    "ncclAllGather": "all_gather",
    "ncclBroadcast": "broadcast",
    "ncclSend": "send_recv",
    "ncclRecv": "send_recv",
}
SHARED = {"all_gather", "reduce_scatter", "all_to_all"}


@dataclass
class Slow:
    """A trace as lists of dictionaries.

    Kernels carry what their name says as ``says``: None for compute, else a kind.
    """

    kernels: list[Row]
    calls: list[Row]
    ranges: list[Row]
    window: tuple[int, int]
    ranks: int | None

    # ---- ranges --------------------------------------------------------------------------

    def batches(self) -> list[list[Row]]:
        """Tell the NCCL ranges of each thread one by one; return those that go together."""
        found: list[list[Row]] = []
        threads = sorted({(r["process_id"], r["thread_id"]) for r in self.ranges})
        for thread in threads:
            mine = [
                r
                for r in self.ranges
                if r["domain"] == "NCCL" and (r["process_id"], r["thread_id"]) == thread
            ]
            depth = 0
            for row in sorted(mine, key=lambda r: r["start_ns"]):
                name = row["name"]
                if name not in CALLS and name not in ("ncclGroupStart", "ncclGroupEnd"):
                    continue
                if depth == 0:
                    found.append([])
                found[-1].append(row)
                if name == "ncclGroupStart":
                    depth += 1
                elif name == "ncclGroupEnd":
                    depth = max(0, depth - 1)
        return found

    def call_of(self, kernel: Row) -> Row | None:
        for call in self.calls:
            same = call["process_id"] == kernel["process_id"]
            if same and call["correlation_id"] == kernel["correlation_id"]:
                return call
        return None

    def around(self, kernel: Row, domain: str) -> list[Row]:
        """Return the ranges around a kernel's launch, the innermost last."""
        call = self.call_of(kernel)
        if call is None:
            return []
        holding = [
            r
            for r in self.ranges
            if r["domain"] == domain
            and (r["process_id"], r["thread_id"]) == (call["process_id"], call["thread_id"])
            and r["start_ns"] <= call["start_ns"] < r["end_ns"]
        ]
        return sorted(holding, key=lambda r: (r["start_ns"], -r["end_ns"]))

    def batch_of(self, kernel: Row, batches: list[list[Row]]) -> list[Row] | None:
        nccl = self.around(kernel, "NCCL")
        if not nccl:
            return None
        return next((b for b in batches if any(row is nccl[-1] for row in b)), None)

    def asked(self, kernel: Row) -> str | None:
        for row in reversed(self.around(kernel, "")):
            if row["name"].startswith("nccl:"):
                return str(row["name"][5:])
        return None

    # ---- kernels -------------------------------------------------------------------------

    def communicating(self) -> list[Row]:
        return [kernel for kernel in self.kernels if kernel["says"] is not None]

    def kind(self, kernel: Row, batch: list[Row] | None) -> str:
        says = str(kernel["says"])
        if says not in ("unknown", "send_recv"):
            return says
        asked = self.asked(kernel)
        if asked is not None:
            return asked
        kinds = {CALLS[r["name"]] for r in batch or [] if r["name"] in CALLS}
        return kinds.pop() if len(kinds) == 1 else says

    def message(self, kind: str, batch: list[Row] | None, launched: int) -> Any:
        """Return (bytes, whether they are all of the data, ranks) of a kernel."""
        if batch is None:
            return None, False, None
        moves = [r for r in batch if r["name"] in CALLS]
        kinds = {CALLS[r["name"]] for r in moves}
        known = {r["communicator_ranks"] for r in moves}
        ranks = known.pop() if len(known) == 1 else None
        sends = kinds == {"send_recv"}
        if kinds != {kind} and not (sends and kind == "all_to_all"):
            return None, False, ranks
        sizes = [r["message_bytes"] for r in moves]
        if None in sizes:
            return None, False, ranks
        if launched == 1:
            out = sum(r["message_bytes"] for r in moves if r["name"] == "ncclSend")
            back = sum(r["message_bytes"] for r in moves if r["name"] == "ncclRecv")
            return (max(out, back) if sends else sum(sizes)), sends, ranks
        if len(moves) == launched and len(set(sizes)) == 1 and not sends:
            return sizes[0], False, ranks
        return None, False, ranks

    def facts(self) -> list[tuple[Row, str, int | None, int | None]]:
        """Return (kernel, kind, bytes of data, ranks) of every communication kernel."""
        batches = self.batches()
        talking = self.communicating()
        mine = [self.batch_of(kernel, batches) for kernel in talking]
        found = []
        for kernel, batch in zip(talking, mine, strict=True):
            launched = sum(other is batch for other in mine)
            kind = self.kind(kernel, batch)
            size, whole, ranks = self.message(kind, batch, launched)
            ranks = self.ranks if ranks is None else ranks
            if size is not None and kind in SHARED and not whole:
                size = None if ranks is None else size * ranks
            found.append((kernel, kind, size, ranks))
        return found

    # ---- times ---------------------------------------------------------------------------

    def inside(self, kernel: Row) -> set[int]:
        low, high = self.window
        return set(range(max(kernel["start_ns"], low), min(kernel["end_ns"], high)))

    def computing(self, device: int) -> set[int]:
        mine = [k for k in self.kernels if k["says"] is None and k["device_id"] == device]
        return set[int]().union(*(self.inside(k) for k in mine))

    def counted(self, kernel: Row) -> bool:
        low, high = self.window
        at_end = kernel["start_ns"] == kernel["end_ns"] == high
        return bool(low <= kernel["start_ns"] < high or at_end)

    def times(self, kernels: Iterable[Row]) -> Row | None:
        """Return the times of some kernels of one lane; None where they are not in the window."""
        kernels = list(kernels)
        calls = sum(self.counted(k) for k in kernels)
        total = sum(len(self.inside(k)) for k in kernels)
        if not calls and not total:
            return None
        busy = set[int]().union(*(self.inside(k) for k in kernels))
        hidden = busy & self.computing(kernels[0]["device_id"])
        return {
            "calls": calls,
            "total_ns": total,
            "busy_ns": len(busy),
            "exposed_ns": len(busy - hidden),
            "overlapped_ns": len(hidden),
        }

    def table(self) -> dict[Key, Row]:
        groups: dict[Key, list[tuple[Row, int | None, int | None]]] = {}
        for kernel, kind, size, ranks in self.facts():
            key = kernel["process_id"], kernel["device_id"], kind
            groups.setdefault(key, []).append((kernel, size, ranks))
        found = {}
        for key, members in groups.items():
            row = self.times(kernel for kernel, _, _ in members)
            if row is not None:
                found[key] = row | self.volume(key[2], members)
        return found

    def volume(self, kind: str, members: list[tuple[Row, int | None, int | None]]) -> Row:
        counted = [m for m in members if self.counted(m[0])]
        sizes = [size for _, size, _ in counted]
        ranks = {n for _, _, n in counted}
        row: Row = {"ranks": ranks.pop() if len(ranks) == 1 else None}
        row |= {"bytes": None, "algorithm_bytes_per_s": None, "bus_bytes_per_s": None}
        if not sizes or None in sizes:
            return row
        row["bytes"] = sum(s for s in sizes if s is not None)
        duration = sum(k["end_ns"] - k["start_ns"] for k, _, _ in counted)
        if not duration:
            return row
        row["algorithm_bytes_per_s"] = row["bytes"] / duration * 1e9
        moved = 0.0
        for _, size, n in counted:
            if kind == "unknown" or (n is None and kind in {*SHARED, "all_reduce"}):
                return row
            factor = 1.0
            if kind == "all_reduce":
                factor = 2 * (n - 1) / n  # type: ignore[operator]
            elif kind in SHARED:
                factor = (n - 1) / n  # type: ignore[operator]
            moved += (size or 0) * factor
        row["bus_bytes_per_s"] = moved / duration * 1e9
        return row

    def by_device(self) -> dict[tuple[int, int], Row]:
        lanes = {(k["process_id"], k["device_id"]) for k in self.communicating()}
        found = {}
        for lane in lanes:
            row = self.times(
                k for k in self.communicating() if (k["process_id"], k["device_id"]) == lane
            )
            if row is not None:
                found[lane] = row
        return found
