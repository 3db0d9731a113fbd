"""What an explanation holds, and how a formula is worked out with the numbers of a trace."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelscope.metrics.analysis import Analysis

OWN = "kernelscope's own"
TBD = (
    "TBD: Zhu et al., Benchmarking and Analyzing Deep Neural Network Training, 2018, and its "
    "authors' tools"
)
HTA = "Holistic Trace Analysis (HTA)"
NSYS = "nsys stats (NVIDIA Nsight Systems)"
CUDA_GUIDE = "NVIDIA CUDA C++ Programming Guide, compute capabilities"

Number = int | float
Value = Number | None


@dataclass(frozen=True, slots=True)
class Worked:
    """A formula with the numbers of one row put in.

    Attributes
    ----------
    label : str
        Which row: a kernel's name, ``index 0``, …
    text : str
        The formula with numbers: ``1,234,567 / 9,876,543``; empty where there is none.
    value : int, float, text or None
        What it comes to; None where a number in it is missing.
    """

    label: str
    text: str
    value: Any


Numbers = Callable[["Analysis"], list[Worked]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How one number comes about.

    Attributes
    ----------
    key : str
        Its place in the JSON: ``devices.kernel_ns``; or a name of its own where it is made of
        what stands there: ``gpu_utilization``.
    question : str
        What it answers.
    formula : str
        Its definition. C, M, P, S and G are the times of compute kernels, communication kernels,
        copies, memsets and graphs traced as one unit; |X| is the length of a union.
    unit : str
        ``ns``, ``ratio``, ``count``, …
    denominator : str
        What it is over, where it is a ratio, a mean or a rate.
    inputs : tuple of str
        Canonical tables and columns that it rests on; they decide which flag records it.
        ``{events}`` is the table of the events that its result table sums up.
    source : str
        Whose definition it is.
    pitfalls : str
        What it does not say.
    elsewhere : str
        How nsys or other tools differ.
    numbers : str, callable or None
        The formula over columns of its row (``kernel_ns / window_ns``), or a function; it comes to
        exactly what the analysis reports. ``sum(total_ns)`` is over all rows, ``n`` the number of
        events, and ``window_ns`` the window.
    whole : bool
        Whether `numbers` holds only where no event straddles the window's edge.
    of : str
        The result table whose rows `numbers` and `sql` are about, where the key names none.
    sql : mapping of str to str
        Key → query that recomputes it: columns that identify the row, then the value.
    sql_whole : bool
        Whether the query finds it only where no window was chosen.
    also : tuple of str
        Other keys of the same definition.
    """

    key: str
    question: str
    formula: str
    unit: str = "ns"
    denominator: str = ""
    inputs: tuple[str, ...] = ()
    source: str = OWN
    pitfalls: str = ""
    elsewhere: str = ""
    numbers: str | Numbers | None = None
    whole: bool = False
    of: str = ""
    sql: Mapping[str, str] = field(default_factory=dict)
    sql_whole: bool = False
    also: tuple[str, ...] = ()


_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_NAMES = re.compile(r"sum\((?P<summed>[\w.]+)\)|(?P<name>[a-z_][\w.]*)|(?P<sign>\*)")


def worked(label: str, formula: str, row: Mapping[str, Value], sums: Mapping[str, Value]) -> Worked:
    """Return `formula` with numbers put in.

    Parameters
    ----------
    label : str
        Which row it is.
    formula : str
        Columns, numbers, ``+ - * /``, brackets, and ``sum(column)`` over all rows.
    row, sums : mapping of str to number
        The row's columns, and the sums of columns.
    """

    def shown(match: re.Match[str]) -> str:
        if match["sign"]:
            return "×"
        return spelled(sums[match["summed"]] if match["summed"] else row[match["name"]])

    text = _NAMES.sub(shown, formula)
    try:
        value = _evaluated(ast.parse(formula, mode="eval").body, row, sums)
    except (TypeError, ZeroDivisionError):  # a number is missing, or there is nothing to divide by
        value = None
    return Worked(label, text, value)


def spelled(value: Value) -> str:
    """Return a number as a formula shows it: whole, or to ten digits."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.10g}"


def _evaluated(node: ast.expr, row: Mapping[str, Value], sums: Mapping[str, Value]) -> Any:
    if isinstance(node, ast.BinOp):
        left, right = _evaluated(node.left, row, sums), _evaluated(node.right, row, sums)
        return _OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Call):
        return sums[ast.unparse(node.args[0])]
    return row[ast.unparse(node)]


def names_in(formula: str) -> tuple[set[str], set[str]]:
    """Return the columns of its own row that a formula names, and those that it sums."""
    found = list(_NAMES.finditer(formula))
    return ({each["name"] for each in found if each["name"]},
            {each["summed"] for each in found if each["summed"]})  # fmt: skip
