"""SQL that recomputes figures from the canonical tables, for ``kernelscope sql``.

It shares nothing with the metrics: rows are clipped, counted and swept by SQLite.
"""

from __future__ import annotations

_EVENTS: dict[str, tuple[str, str, str]] = {
    "kernels": ("kernels", "e.name", ""),
    "kernels_by_device": ("kernels", "e.name, e.process_id, e.device_id", ""),
    "launch_shapes": (
        "kernels",
        "e.name, e.grid_x AS grid_0, e.grid_y AS grid_1, e.grid_z AS grid_2, "
        "e.block_x AS block_0, e.block_y AS block_1, e.block_z AS block_2",
        "",
    ),
    "api_calls": ("api_calls", "e.name", "e.kind <> 'wrapper'"),
    "copies": ("copies", "e.kind, e.src_memory, e.dst_memory", ""),
    "copies_by_kind": ("copies", "e.kind", ""),
    "capture_cost": ("overheads", "e.name", ""),
}
"""Result table → the canonical table of its events, its groups, and a condition."""

_CLIPPED = "sum(max(0, min(e.end_ns, w.end_ns) - max(e.start_ns, w.start_ns)))"
_STARTS_INSIDE = "e.start_ns >= w.start_ns AND (e.start_ns < w.end_ns OR e.end_ns = w.end_ns)"
DURATION = "e.end_ns - e.start_ns"


def events_of(table: str) -> str:
    """Return the canonical table whose events a result table sums up; empty for others."""
    return _EVENTS.get(table, ("", "", ""))[0]


def clipped_totals(column: str, *tables: str) -> dict[str, str]:
    """Return, for each table, the query that sums durations clipped to the window."""
    made = {}
    for table in tables:
        events, groups, condition = _EVENTS[table]
        where = f"\nWHERE {condition}" if condition else ""
        made[f"{table}.{column}"] = (
            f"SELECT {groups},\n  {_CLIPPED} AS total_ns\n"
            f"FROM {events} AS e, window AS w{where}\nGROUP BY {_places(groups)}"
        )
    return made


def statistics(column: str, expression: str, *tables: str) -> dict[str, str]:
    """Return, for each table, the query of a statistic of the events that start in the window."""
    made = {}
    for table in tables:
        events, groups, condition = _EVENTS[table]
        conditions = " AND ".join(filter(None, (_STARTS_INSIDE, condition)))
        made[f"{table}.{column}"] = (
            f"SELECT {groups},\n  {expression} AS value\n"
            f"FROM {events} AS e, window AS w\nWHERE {conditions}\nGROUP BY {_places(groups)}"
        )
    return made


def shares(key: str, whole: str) -> dict[str, str]:
    """Return the query of each kernel's clipped total over `whole`, an expression of ``t``."""
    total = clipped_totals("total_ns", "kernels")["kernels.total_ns"]
    return {
        key: f"WITH t AS (\n{total})\nSELECT t.name,\n  1.0 * t.total_ns / {whole} AS value\nFROM t"
    }


def device_states(key: str, condition: str) -> dict[str, str]:
    """Return the query of how long a condition on what runs at once holds on each device."""
    return {
        key: "SELECT device AS \"index\",\n  sum(end_ns - start_ns) AS value\n"
        f"FROM device_states\nWHERE {condition}\nGROUP BY device"
    }  # fmt: skip


def _places(groups: str) -> str:
    return ", ".join(str(place + 1) for place in range(groups.count(",") + 1))
