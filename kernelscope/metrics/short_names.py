"""Short forms of kernel names that people can read, of which no two are alike.

``void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, …>(…)`` is
``vectorized_elementwise_kernel<CUDAFunctor_add<float>>``. Identity is not a label: they are for
reports, and data keeps whole names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kernelscope.metrics.decoder_tables.rows import TYPES
from kernelscope.metrics.kernel_decoder import KernelName, decode_all
from kernelscope.metrics.kernel_names import name_parts

LONGEST = 160
"""Characters of a short form; what is longer is cut where names are fitted to a page."""

_DEPTH = 3
"""Template arguments deeper than this are left out."""

_MANY = 12
"""Template arguments of one level that are looked at."""

_LOOK = 1500
"""Characters of the template arguments that are looked at."""

_CAST = re.compile(r"\((?:unsigned |signed )?[\w:]+(?: long| int| char)*\)(?=-?\d)")
_NAMESPACES = re.compile(r"(?:\b[A-Za-z_]\w*:{2,})+(?=[A-Za-z_~])")
_NUMBER = re.compile(r"-?\d+[uUlL]*|true|false|void|unsigned int|unsigned long|nullptr_t")
_NAMELESS = re.compile(r"[kK]ernel(?:\d+|_helper\w*)?")
"""Names of functions that say nothing without their namespace."""
_LAMBDA = re.compile(r"lambda\(([\w: ]+?)(?:[,&)]| const)")
_WRAPPERS = frozenset(
    {"gpu_kernel_impl", "gpu_kernel_impl_nocast", "gpu_kernel_with_scalars", "func_wrapper_t",
     "ReduceOp", "gpu_index_kernel", "device_kernel", "enable_sm90_or_later", "enable_sm90",
     "enable_sm80_to_sm89", "ParallelForAgent", "opmath_gpu_kernel_with_scalars"}
)  # fmt: skip
"""Templates that say less than what they wrap."""

_PLUMBING = (
    "Array<", "array<", "TrivialOffsetCalculator", "OffsetCalculator", "LoadWith", "StoreWith",
    "TensorListMetadata", "TensorListScalarListMetadata", "FusedOptimizerTensorListMetadata",
    "DefaultPtrTraits",
)  # fmt: skip
"""Arguments of PyTorch's kernels that tell none of them from another."""


def short_names(names: Sequence[str]) -> list[str]:
    """Return a short form of each name, unique among them.

    Names that look alike without numbers keep these; those that still do are numbered in the
    order given, ``f<float> ~2`` being the second.

    Parameters
    ----------
    names : sequence of str
        Distinct names, in the order of a report.
    """
    found = decode_all(tuple(names))
    brief = [_short(each, numbers=False) for each in found]
    alike = _repeated(brief)
    said = [
        _short(each, numbers=True) if text in alike else text
        for each, text in zip(found, brief, strict=True)
    ]
    return _numbered(said)


def _repeated(texts: Sequence[str]) -> frozenset[str]:
    seen: set[str] = set()
    return frozenset(text for text in texts if text in seen or seen.add(text))  # type: ignore[func-returns-value]


def _numbered(texts: Sequence[str]) -> list[str]:
    taken = set(texts)
    used: dict[str, int] = {}
    result: list[str] = []
    for text in texts:
        rank = used.get(text, 0) + 1
        label = text if rank == 1 else f"{text} ~{rank}"
        while rank > 1 and label in taken:
            rank += 1
            label = f"{text} ~{rank}"
        used[text] = rank
        taken.add(label)
        result.append(label)
    return result


def _short(found: KernelName, *, numbers: bool) -> str:
    function, arguments, _ = name_parts(found.name)
    outer, _, own = function.rpartition("::")
    if not own or found.name.startswith("_Z"):
        return (own or found.name)[:LONGEST]
    if found.operation == "attention" and found.tile_k is not None:
        text = _attention(found, own, numbers=numbers)
    elif own in ("Kernel", "Kernel2") and re.fullmatch(r"\w+", arguments):
        text = arguments  # cutlass::Kernel2<cutlass_80_tensorop_…>
    elif own in _WRAPPERS:
        text = _braced("", arguments, numbers=numbers) or own
        text = text.removeprefix("<").removesuffix(">")
    elif _NAMELESS.fullmatch(own) and outer:
        whole = f"{outer.rpartition('::')[2]}::{own}"
        text = _multiplying(whole, found) or _braced(whole, arguments, numbers=numbers)
    else:
        text = _braced(own, arguments, numbers=numbers)
    return text[:LONGEST]


def _multiplying(own: str, found: KernelName) -> str:
    """Return type and tile of a kernel whose template arguments say it at length."""
    if found.family != "xmma" or found.tile_m is None:
        return ""
    tile = f"{found.tile_m}x{found.tile_n}x{found.tile_k}"
    return f"{own}<{', '.join(filter(None, [found.pipe, tile]))}>"


def _attention(found: KernelName, own: str, *, numbers: bool) -> str:
    base = own.removesuffix("_kernel")
    if base == "device":
        base = "flash_fwd" if found.direction == "forward" else "flash_bwd"
        base = f"{base}_{found.architecture}" if found.architecture else base
    said = [f"hdim{found.tile_k}", found.input_type]
    if numbers and found.tile_m is not None:
        said.append(f"{found.tile_m}x{found.tile_n}")
    return f"{base}<{', '.join(filter(None, said))}>"


def _braced(own: str, arguments: str, *, numbers: bool) -> str:
    plain = _NAMESPACES.sub("", _CAST.sub("", arguments[:_LOOK]))
    inside = ", ".join(_briefed(plain, _DEPTH, numbers=numbers))
    return f"{own}<{inside}>" if inside else own


def _briefed(text: str, depth: int, *, numbers: bool) -> Iterator[str]:
    """Iterate over what is worth saying of template arguments."""
    for argument in _separated(text):
        if _NUMBER.fullmatch(argument):
            if numbers:
                yield argument
        elif not argument.startswith(_PLUMBING):
            said = _one(argument, depth, numbers=numbers)
            if said:
                yield said


def _one(argument: str, depth: int, *, numbers: bool) -> str:
    name, bracket, rest = argument.removeprefix("void ").partition("<")
    paren = name.find("(")
    if paren >= 0:  # a lambda of that function
        function = name[:paren].rpartition(" ")[2]
        types = _LAMBDA.search(argument, paren)
        return f"{function}<{_typed(types[1])}>" if types else function
    name = name.strip()
    if not bracket:
        return _typed(name)
    inside = list(_briefed(rest, depth - 1, numbers=numbers)) if depth > 1 else []
    if name.rpartition(" ")[2] in _WRAPPERS:
        return ", ".join(inside)
    return f"{name}<{', '.join(inside)}>" if inside else name


def _typed(text: str) -> str:
    """Return a type, 16-bit ones in one spelling."""
    plain = text.strip().removesuffix(" const").removesuffix("const").strip()
    return {"fp16": "half", "bf16": "bf16"}.get(TYPES.get(plain, ""), plain)


def _separated(text: str) -> Iterator[str]:
    """Iterate over template arguments of one level, without those of the levels below."""
    depth, start, found = 0, 0, 0
    for bracket in re.finditer(r"[<>(){}\[\],]", text):
        mark = bracket[0]
        if mark in "<({[":
            depth += 1
        elif mark in ">)}]":
            depth -= 1
            if depth < 0:
                break
        elif not depth:
            yield text[start : bracket.start()].strip()
            start, found = bracket.end(), found + 1
            if found == _MANY:
                return
    else:
        yield text[start:].strip()
        return
    yield text[start : bracket.start()].strip()
