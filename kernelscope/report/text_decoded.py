"""The pages of ``kernelscope decode``: what names say, and how much of a trace they cover."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from rich.text import Text

from kernelscope import units
from kernelscope.metrics.decoded_names import coverage
from kernelscope.report.layout import Figures, Page, definitions, grid, heading, paragraph, shorten
from kernelscope.report.rows import plain
from kernelscope.report.text_lists import more
from kernelscope.trace import Table

_SAID = (
    "family", "operation", "pass", "pipe", "tensor_core", "input_type", "accumulate_type",
    "output_type", "instruction", "stages", "layout", "architecture",
)  # fmt: skip
_NOTHING = "nothing: no table of the decoder knows it. Unknown is an answer."


def page_of_names(table: Table, page: Page) -> list[Text]:
    """Return what each name says, one after the other.

    Parameters
    ----------
    table : Table
        Under ``decoder_results.DECODED_NAMES``.
    page : Page
        Width, and how many names.
    """
    lines: list[Text] = []
    rows = [dict(zip(table.schema.names, row, strict=True)) for row in _rows(table)]
    shown = rows[: page.shown(len(rows))]
    for row in shown:
        lines += heading(page, row["short_name"] or units.MISSING, row["certainty"])
        lines += paragraph(page, shorten(row["name"], 4 * page.width), style="dim")
        said = [(name.replace("_", " "), str(row[name])) for name in _SAID if row[name] is not None]
        tile = [str(row[f"tile.{i}"]) for i in range(3) if row[f"tile.{i}"] is not None]
        said += [("tile", " × ".join(tile))] if tile else []
        said += [(flag.replace("_", "-"), "yes") for flag in ("split_k", "auxiliary") if row[flag]]
        if not said:
            said = [("says", _NOTHING)]
        lines += definitions(page, said)
    return [*lines[1:], *more(page, len(shown), len(rows), "name", "--top 0 shows all")]


def page_of_trace(table: Table, page: Page, title: str) -> list[Text]:
    """Return how much of a trace's kernel time is decoded, by library, and what is not.

    Parameters
    ----------
    table : Table
        Under ``decoder_results.DECODED_NAMES``, with times.
    page : Page
        Width, and how many rows.
    title : str
        Name of the file.
    """
    lines = [Text.assemble(("kernelscope", "bold"), "  ", shorten(title, page.width - 13))]
    if not len(table):
        return [*lines, *heading(page, "Kernel names"), *paragraph(page, "No kernel ran.")]
    found = coverage(table)
    shares = [_share(each.known_ns, each.total_ns) for each in found]
    names = [f"{each.known_names} of {each.names}" for each in found]
    lines += heading(page, "What names say", f"of {units.duration(found[0].total_ns)} kernel time")
    lines += grid(
        page,
        [
            Figures("of time", units.texts(shares, "ratio"), style="bold"),
            Figures("of names", names),
        ],
        "known",
        [each.what for each in found],
    )
    return [*lines, *_families(table, page), *_unknown(table, page)]


def _families(table: Table, page: Page) -> list[Text]:
    time: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    names: Counter[tuple[str, str, str]] = Counter()
    for family, operation, pipe, ns in zip(
        *(table.texts(name) for name in ("family", "operation", "pipe")),
        table.values("total_ns"), strict=True,
    ):  # fmt: skip
        if family is not None:
            key = (family, operation or units.MISSING, pipe or units.MISSING)
            time[key] += ns or 0
            names[key] += 1
    if not names:
        return []
    keys = sorted(time, key=lambda key: (-time[key], key))
    shown = keys[: page.shown(len(keys))]
    whole = sum(value or 0 for value in table.values("total_ns"))
    figures = [
        Figures("share", units.texts([_share(time[key], whole) for key in shown], "ratio")),
        Figures("total", units.durations([time[key] for key in shown]), style="bold"),
        Figures("names", units.texts([names[key] for key in shown], "count"), 1),
        Figures("pipe", [key[2] for key in shown]),
        Figures("operation", [key[1] for key in shown]),
    ]
    return [
        *heading(page, "By library, operation and pipe"),
        *grid(page, figures, "library", [key[0] for key in shown]),
        *more(page, len(shown), len(keys), "row", "--top 0 shows all"),
    ]


def _unknown(table: Table, page: Page) -> list[Text]:
    families = table.texts("family")
    rows = [row for row, family in enumerate(families) if family is None]
    if not rows:
        return []
    names, times = plain(table, "short_name"), plain(table, "total_ns")
    share = plain(table, "share")
    shown = rows[: page.shown(len(rows))]
    figures = [
        Figures("share", units.texts([share[row] for row in shown], "ratio")),
        Figures("total", units.durations([times[row] for row in shown]), style="bold"),
    ]
    return [
        *heading(page, "Names of no known library", "a program's own kernels, for the most part"),
        *grid(page, figures, "kernel", [names[row] for row in shown]),
        *more(page, len(shown), len(rows), "kernel", "--top 0 shows all"),
    ]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _rows(table: Table) -> zip[tuple[Any, ...]]:
    return zip(*(plain(table, name) for name in table.schema.names), strict=True)
