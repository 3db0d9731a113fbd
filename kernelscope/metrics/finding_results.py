"""The table of findings: what to mend first, with evidence and a bound on what it can save."""

from __future__ import annotations

from kernelscope.schema import TableSchema, integer, real, text

FINDINGS = TableSchema(
    "findings",
    "What should be mended first, and what can that save at most?",
    (
        text("code", "a stable name for scripts"),
        text("title", "what is wrong, in one sentence"),
        text("evidence", "the numbers that say so, and where they are from"),
        integer(
            "saving_bound_ns",
            "ns",
            "at most so much of each iteration (of the window, where there are none) can be saved; "
            "bounds of several findings overlap and must not be added up; missing where a run "
            "without the profiler would not lose it",
            optional=True,
        ),
        real("saving_share", "ratio", "saving_bound_ns over the mean step time, or the window"),
        text("per", "what the bound is of: iteration or window"),
        integer("device", "id", "the row of `devices`"),
        text("where", "the longest stretch of it on that device"),
        text("advice", "what to try"),
        text("next", "the command that drills down"),
    ),
)
