"""Operations of tensor cores: as they were counted, else from instructions and their shape.

A kernel's tensor instructions are of one type. So where one type of operand or one kind of
instruction counted something, it is taken for all there was; where all that were counted are 0,
and another could have been used, nothing is concluded but a lower bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np

from kernelscope.metrics import counted_recipes as recipes
from kernelscope.metrics.counted_quantity import PARTIAL, UNKNOWN_SHAPE, Capability, Quantity
from kernelscope.metrics.counted_values import Counted, added

FLOPS, INT_OPS = "tensor_flops", "tensor_int_ops"


def tensor_work(
    counters: Mapping[str, Counted], name: str, capability: Capability
) -> dict[str, Quantity]:
    """Return the operations of a group's tensor cores by quantity; nothing where none counted.

    Parameters
    ----------
    counters : mapping of str to Counted
        What was counted of the group.
    name : str
        The kernel's: it may tell the shape of its instructions.
    capability : (int, int) or None
        Compute capability of the GPU that counted.
    """
    return _by_path(counters) or _by_instruction(counters, name, capability)


def is_tensor_counter(name: str) -> bool:
    """Return whether a counter's name is one that this module reads."""
    return any(
        re.fullmatch(each, name) for each in (recipes.TENSOR_OPS, recipes.TENSOR_INSTRUCTIONS)
    )


def _by_path(counters: Mapping[str, Counted]) -> dict[str, Quantity]:
    terms: dict[str, list[str]] = {}
    seen = set()
    for counter in counters:
        path = re.fullmatch(recipes.TENSOR_OPS, counter)
        if path is None:
            continue
        # What is counted with and without sparsity apart is counted together as well.
        if path["sparse"] and counter.replace(path["sparse"], "") in counters:
            continue
        seen.add(path["source"])
        whole = path["source"].startswith(("int", "uint", "u8", "s8", "bin", "b1"))
        terms.setdefault(INT_OPS if whole else FLOPS, []).append(counter)
    complete = seen.issuperset(recipes.TENSOR_PATHS)
    found = {}
    for quantity, names in terms.items():
        total = added([(1.0, counters[each]) for each in names])
        if quantity == FLOPS and not complete and total.high == 0:
            found[quantity] = Quantity(total, _sum_of(names), PARTIAL, 1.0, np.nan, np.nan)
        else:
            found[quantity] = Quantity(total, _sum_of(names))
    return found


def _sum_of(names: Iterable[str]) -> str:
    return " + ".join(f"1 {each}" for each in names)


def _by_instruction(
    counters: Mapping[str, Counted], name: str, capability: Capability
) -> dict[str, Quantity]:
    """Return operations as instructions times 2·m·n·k of their shape, or between bounds."""
    totals = [f"{unit}__inst_executed_pipe_tensor.sum" for unit in ("sm", "smsp")]
    total = next((each for each in totals if each in counters), None)
    kinds: dict[str, str] = {}
    for counter in counters:
        kind = re.fullmatch(recipes.TENSOR_INSTRUCTIONS, counter)
        if kind is not None:
            kinds.setdefault(kind["kind"], counter)
    used = {kind: each for kind, each in kinds.items() if counters[each].high != 0}
    if total is not None and counters[total].high == 0:
        return {FLOPS: Quantity(counters[total], f"0 {total}")}
    if used:
        return _of_kinds(counters, used, name, capability)
    if total is not None:  # of whole numbers as well as of fractions, from 7.2 on
        return _of_total(counters[total], total, name, capability)
    if not kinds:
        return {}
    nothing, formula = counters[next(iter(kinds.values()))], " + ".join(kinds.values())
    could = {
        kind for kind, since in recipes.TENSOR_KINDS if capability is None or capability >= since
    }
    if could <= set(kinds):
        return {FLOPS: Quantity(nothing, f"0 {formula}")}
    return {FLOPS: Quantity(nothing, f"0 {formula}", PARTIAL, 1.0, np.nan, np.nan)}


def _of_kinds(
    counters: Mapping[str, Counted], used: Mapping[str, str], name: str, capability: Capability
) -> dict[str, Quantity]:
    found = {}
    for quantity in (FLOPS, INT_OPS):
        whole = quantity == INT_OPS
        mine = {
            kind: each for kind, each in used.items() if (kind in recipes.WHOLE_NUMBERS) == whole
        }
        if not mine:
            continue
        instructions = added([(1.0, counters[each]) for each in mine.values()])
        least, most = 0.0, np.nan
        if len(used) == 1 and "gmma" not in mine:  # one kind has the shape that the name tells
            least, most = _operations(name, capability if not whole else None)
        found[quantity] = _quantity(instructions, " + ".join(mine.values()), least, most)
    return found


def _of_total(
    instructions: Counted, counter: str, name: str, capability: Capability
) -> dict[str, Quantity]:
    whole = re.search(recipes.INTEGER_NAMES, name) is not None
    least, most = _operations(name, capability if not whole else None)
    if least != most and capability != (7, 0):
        least = 0.0  # they may be of whole numbers
    if capability is not None and capability >= (9, 0):
        least, most = 0.0, np.nan  # a warp group's count as well
    return {INT_OPS if whole else FLOPS: _quantity(instructions, counter, least, most)}


def _operations(name: str, capability: Capability) -> tuple[float, float]:
    """Return the operations of one warp instruction, at least and at most."""
    least, most = recipes.TENSOR_BOUNDS.get(capability or (0, 0), (0, np.nan))
    if least == most:
        return least, most
    shape = re.search(recipes.TENSOR_SHAPE, name)
    if shape is not None:
        operations = 2 * int(shape[1]) * int(shape[2]) * int(shape[3])
        return operations, operations
    for pattern, operations in recipes.TENSOR_SHAPES:
        if re.search(pattern, name):
            return operations, operations
    return least, most


def _quantity(instructions: Counted, formula: str, least: float, most: float) -> Quantity:
    if least == most:
        return Quantity(added([(least, instructions)]), f"{least:g} {formula}")
    words = f"at least {least:g}" if np.isnan(most) else f"{least:g} to {most:g}"
    return Quantity(instructions, f"{words} {formula}", UNKNOWN_SHAPE, least, np.nan, most)
