"""The answer of ``kernelscope explain``: how a number comes about, for people and for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from kernelscope import units
from kernelscope.metrics.explanations import FACT, Topic, Worked, groups, topics
from kernelscope.parsers.nsys_names import HOW_TO_RECORD
from kernelscope.report.explained import Comparison
from kernelscope.report.layout import Page, definitions, heading, paragraph, shorten_all

_LEGEND = (
    "C compute kernels, M communication kernels, P copies, S memsets, G graphs traced as one "
    "unit; |X| the length of a union"
)


@dataclass(frozen=True, slots=True)
class InTrace:
    """What a trace has to say of a number.

    Attributes
    ----------
    rows : sequence of Worked
        The formula with its numbers, in the order of the report.
    count : int
        How many rows there are in all.
    window : str
        The window that they speak of.
    comparison : Comparison or None
        What SQL finds, where that was asked for and there is a query.
    unchecked : str
        Why there is no comparison.
    withheld : str
        Why values are missing, where the capture as a whole is the reason.
    """

    rows: Sequence[Worked]
    count: int
    window: str
    comparison: Comparison | None = None
    unchecked: str = ""
    withheld: str = ""


def lines(topic: Topic, page: Page, found: InTrace | None = None) -> list[Text]:
    """Return the explanation of a number as lines of a page."""
    entry = topic.explanation
    unit = "" if entry.unit in ("text", "flag", "path", "id") else entry.unit
    made = heading(page, topic.key, unit)
    made += paragraph(page, entry.question)
    made += [Text()]
    made += definitions(page, _parts(topic))
    if found is not None:
        made += _in_trace(entry.unit, found, page)
    query = entry.sql.get(topic.key)
    if query is not None:
        made += _query(query, page)
    return made


def part(page: Page, name: str, chosen: Sequence[Topic]) -> list[Text]:
    """Return the numbers of a table or a group of columns, a line each."""
    return [*heading(page, name), *definitions(page, _said(chosen))]


def listing(page: Page) -> list[Text]:
    """Return every number that can be explained, in groups."""
    made: list[Text] = []
    for title, found in groups():
        if found:
            made += [*heading(page, title), *definitions(page, _said(found))]
    hint = "Next: kernelscope explain METRIC FILE puts the numbers of a trace in."
    return [*made, Text(), *paragraph(page, hint, style="dim")]


def document(topic: Topic, found: InTrace | None = None) -> dict[str, Any]:
    """Return the explanation of a number, ready for JSON."""
    entry = topic.explanation
    made: dict[str, Any] = {
        "metric": topic.key,
        "question": entry.question,
        "meaning": topic.column.meaning if topic.column else None,
        "formula": entry.formula,
        "unit": entry.unit,
        "denominator": entry.denominator or None,
        "inputs": list(topic.inputs),
        "how_to_record": flags(topic.inputs),
        "source": entry.source,
        "pitfalls": entry.pitfalls or None,
        "elsewhere": entry.elsewhere or None,
        "sql": entry.sql.get(topic.key),
        "same_definition": [key for key in (entry.key, *entry.also) if key != topic.key],
    }
    if found is not None:
        made["window"] = found.window
        made["rows"] = [
            {"of": each.label, "numbers": each.text or None, "value": each.value}
            for each in found.rows
        ]
        made["withheld"] = found.withheld or None
        if found.comparison is not None:
            made["sql_agrees"] = not found.comparison.differences
            made["sql_differences"] = list(found.comparison.differences)
    return made


def catalogue(chosen: Sequence[Topic] | None = None) -> dict[str, Any]:
    """Return numbers that can be explained, every one by default, ready for JSON."""
    return {
        "metrics": [
            {
                "metric": topic.key,
                "question": topic.explanation.question,
                "meaning": topic.column.meaning if topic.column else topic.explanation.formula,
                "unit": topic.explanation.unit,
                "written": topic.written,
            }
            for topic in (topics().values() if chosen is None else chosen)
        ]
    }


_COUNTING = (
    "ncu or nvprof --metrics, in a run of its own: kernelscope analyze TRACE --counters FILE"
)


def flags(inputs: Sequence[str]) -> list[str]:
    """Return the profiler's flags that record the given canonical columns."""
    tables = dict.fromkeys(each.partition(".")[0] for each in inputs)
    named = [HOW_TO_RECORD[table][2] for table in tables if table in HOW_TO_RECORD]
    if "counters" in tables:
        named.append(_COUNTING)
    # --trace=cuda,nvtx records what --trace=cuda does.
    kept = [each for each in named if not any(o != each and o.startswith(each) for o in named)]
    return list(dict.fromkeys(filter(None, kept)))


def _parts(topic: Topic) -> list[tuple[str, str]]:
    entry = topic.explanation
    symbols = any(sign in entry.formula for sign in "∪∧¬")
    meaning = topic.column.meaning if topic.column else ""
    said = [
        ("meaning", meaning if meaning != entry.formula else ""),
        ("formula", f"{entry.formula} ({_LEGEND})" if symbols else entry.formula),
        ("over", entry.denominator),
        ("inputs", ", ".join(topic.inputs)),
        ("recorded by", "; ".join(flags(topic.inputs))),
        ("source", entry.source if topic.written else "the schema: no more is written of it"),
        ("beware", entry.pitfalls),
        ("elsewhere", entry.elsewhere),
        ("also", ", ".join(key for key in (entry.key, *entry.also) if key != topic.key)),
    ]
    return [(term, text) for term, text in said if text]


def _in_trace(unit: str, found: InTrace, page: Page) -> list[Text]:
    made = heading(page, "In this trace", found.window)
    labels = shorten_all([each.label for each in found.rows], page.width)
    for label, each in zip(labels, found.rows, strict=True):
        made += [Text(label, style="bold")] if label else []
        made += paragraph(page, _sentence(each, unit), mark="  " if label else "")
    if not labels:
        made += paragraph(page, "No rows: nothing of the kind happened, or it was not recorded.")
    if found.withheld:
        made += paragraph(page, f"Withheld: {found.withheld}.")
    if len(found.rows) < found.count:
        more = units.quantity(found.count - len(found.rows), "more row")
        made += paragraph(page, f"… {more} (--top 0 shows all)", style="dim")
    return made + _compared(found.comparison, page)


def _compared(comparison: Comparison | None, page: Page) -> list[Text]:
    if comparison is None:
        return []
    rows = units.quantity(comparison.rows, "row")
    if not comparison.differences:
        return [Text(), *paragraph(page, f"SQL finds the same, in {rows}.", mark="✓ ")]
    made = [Text(), *paragraph(page, f"SQL finds something else, of {rows}:", mark="✗ ")]
    for difference in comparison.differences[: page.shown(len(comparison.differences))]:
        made += paragraph(page, difference, mark="  ", style="red")
    return made


def _sentence(each: Worked, unit: str) -> str:
    value = each.value
    if value is None:
        return f"{each.text} = {units.MISSING}" if each.text else f"{units.MISSING} (no value)"
    if isinstance(value, list | dict):
        return _listed(value)
    human = units.texts([value], unit)[0]
    exact = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    if isinstance(value, float):
        exact = f"{value:,.10g}"
    if unit in ("ns", "bytes") and isinstance(value, int):
        exact = f"{exact} {'B' if unit == 'bytes' else unit}"
    result = exact if human in (exact, str(value)) else f"{exact} ({human})"
    return f"{each.text} = {result}" if each.text else result


def _listed(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_listed(each)}" for name, each in value.items())
    if isinstance(value, list):
        return "; ".join(map(_listed, value)) or "none"
    return units.MISSING if value is None else str(value)


def _said(found: Sequence[Topic]) -> list[tuple[str, str]]:
    return [
        (
            topic.key,
            topic.explanation.question
            if topic.written and topic.explanation.question != FACT
            else f"{topic.column.meaning if topic.column else topic.explanation.formula}",
        )
        for topic in found
    ]


def _query(query: str, page: Page) -> list[Text]:
    """Return a query as a shell takes it: lines may break at any blank."""
    made = heading(page, "To check it")
    made += [Text("kernelscope sql FILE - <<'SQL'")]
    for line in query.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()))
        made += paragraph(page, line.lstrip(), mark=indent)
    return [*made, Text("SQL")]
