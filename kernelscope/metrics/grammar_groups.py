"""What the named groups of a grammar say: types, pipe, instruction, tile, pass."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from functools import cache
from typing import Any

from kernelscope.metrics.decoder_tables.functors import FUNCTORS
from kernelscope.metrics.decoder_tables.rows import (
    CORE_PIPE_OF,
    TENSOR_PIPE_OF,
    TYPES,
    Grammar,
    Word,
)

Fields = dict[str, Any]

_ACCUMULATORS = {
    "s": "fp32", "h": "fp16", "d": "fp64", "i": "int32", "c": "complex64", "z": "complex128",
    "gc": "complex64", "gz": "complex128",
}  # fmt: skip
_CORE_PIPES = {"s": "FFMA", "d": "DFMA", "h": "HFMA2", "i": "ALU", "c": "FFMA", "z": "DFMA"}
_SHAPES = {
    "884": "8x8x4", "1684": "16x8x4", "1688": "16x8x8", "8816": "8x8x16", "8832": "8x8x32",
    "16816": "16x8x16", "16832": "16x8x32", "16864": "16x8x64", "161616": "16x16x16",
    "88128": "8x8x128", "168256": "16x8x256",
}  # fmt: skip
_NVJET = {"h": "fp16", "t": "bf16", "s": "fp32", "q": "fp8", "o": "fp4"}
_KINDS: tuple[tuple[str, str, str | None], ...] = (
    ("fprop", "convolution", "forward"),
    ("dgrad", "convolution", "data_gradient"),
    ("wgrad", "convolution", "weight_gradient"),
    ("gemm", "gemm", None),
    ("cudnn", "convolution", None),
)
_ATTENTION = {
    "F": "forward", "fwd": "forward", "Fwd": "forward", "fprop": "forward",
    "B": "data_gradient", "bwd": "data_gradient", "Bwd": "data_gradient",
    "bprop": "data_gradient",
}  # fmt: skip

_INSTRUCTION = re.compile(r"_tensor(\d+x\d+x\d+)")
_TILE = re.compile(r"_tilesize(\d+)x(\d+)x(\d+)")
_STAGE = re.compile(r"_stage(\d+)_")
_STAGES = re.compile(r"_stages_(\d+)x(\d+)")
_MATRICES = re.compile(r"(?:^|_)([nt]{2,3})_n_|_([nt]{2}|[NT]{3})(?:_splitK|_v\d+)?$")
_IMAGES = re.compile(r"_?(nhwc|nchw)(?:2(nhwc|nchw)|(?:krsc|kcrs)_(nhwc|nchw))?(?=_|$)")


def read_groups(grammar: Grammar, groups: Mapping[str, str | None]) -> Fields:
    """Return the fields of a KernelName that a match of a grammar decides.

    Parameters
    ----------
    grammar : Grammar
        The grammar that matched.
    groups : mapping of str to str or None
        Its named groups.
    """
    rest = groups.get("rest") or ""
    fields: Fields = {"family": grammar.family, "operation": grammar.operation}
    fields |= _sizes(groups, rest) | _kind(grammar, groups, rest) | _types(groups, rest)
    fields["split_k"] = "splitK" in rest or "split_k" in rest
    sm, arch = groups.get("sm"), groups.get("arch")
    fields["architecture"] = f"sm{sm}" if sm else arch.lower() if arch else None
    fields["layout"] = _layout(groups, rest)
    special = _SPECIAL.get(grammar.family)
    return fields | (special(groups, fields, rest) if special else {})


def _kind(grammar: Grammar, groups: Mapping[str, str | None], rest: str) -> Fields:
    kind = groups.get("kind") or ""
    if grammar.operation == "attention":
        return {"direction": _ATTENTION.get(kind)}
    if grammar.operation is not None:
        return {}
    found = next((row for row in _KINDS if row[0] in kind), None)
    if found is None:
        return {}
    _, operation, direction = found
    if kind == "cudnn":
        direction = _direction_of(rest, winograd=bool(groups.get("winograd")))
    return {"operation": operation, "direction": direction}


def _direction_of(rest: str, *, winograd: bool) -> str | None:
    """Return the pass of a hand-written convolution of cuDNN.

    ``stridedB`` ran in backward passes only (of 30 names in 14 recorded runs of forward and
    backward passes, each apart), ``relu`` in forward form, but for Winograd: it does both.
    """
    for piece, direction in (
        ("wgrad", "weight_gradient"), ("dgrad", "data_gradient"), ("stridedB", "backward"),
    ):  # fmt: skip
        if piece in rest:
            return direction
    return "forward" if "_relu" in rest and not winograd else None


def _sizes(groups: Mapping[str, str | None], rest: str) -> Fields:
    m, n, k, stages = (groups.get(each) for each in ("m", "n", "k", "stages"))
    tile, stage, both = _TILE.search(rest), _STAGE.search(rest), _STAGES.search(rest)
    if tile:
        m, n, k = tile.groups()
    if stage:
        stages = stage[1]
    if both:
        k, stages = both.groups()
    sizes: Fields = {
        "tile_m": _number(m), "tile_n": _number(n), "tile_k": _number(k),
        "stages": _number(stages) or None,  # CUTLASS writes 0 for: as many as fit
    }  # fmt: skip
    return sizes


def _number(text: str | None) -> int | None:
    return int(text) if text and len(text) < 10 else None


def _layout(groups: Mapping[str, str | None], rest: str) -> str | None:
    given = groups.get("layout")
    if given:
        return given.lower()
    images = _IMAGES.search(rest)
    if images:
        second = images[2] or images[3]
        return images[1] if second in (None, images[1]) else f"{images[1]}2{second}"
    matrices = _MATRICES.search(rest)
    return (matrices[1] or matrices[2]).lower() if matrices else None


def type_of(spelled: str | None) -> str | None:
    """Return what kernelscope calls a type; None where it is not known."""
    if spelled is None:
        return None
    if spelled.isupper():  # MMA atoms of CuTe: BF16, E4M3
        spelled = spelled.lower()
    scaled = spelled.rpartition("x")[2]  # ue4m3xf4: FP4 with scales of type ue4m3
    return TYPES.get(spelled) or TYPES.get(scaled) or TYPES.get(scaled.removeprefix("u"))


def _types(groups: Mapping[str, str | None], rest: str) -> Fields:
    letter, mma = groups.get("letter"), groups.get("mma")
    stored, multiplied = type_of(groups.get("a")), type_of(groups.get("mul"))
    tensor = _on_tensor_cores(groups, rest)
    accumulated = type_of(groups.get("acc")) or _ACCUMULATORS.get(letter or "")
    if multiplied is None and tensor:
        multiplied = stored or _implied(letter, mma, groups)
    if stored is None:
        stored = ("fp32" if multiplied == "tf32" and letter == "s" else multiplied) or (
            None if tensor else _ACCUMULATORS.get(letter or "")
        )
    pipe: str | None = None
    if tensor:
        pipe = TENSOR_PIPE_OF.get(multiplied or "")
    elif tensor is False:
        pipe = _CORE_PIPES.get((letter or "")[-1:]) or CORE_PIPE_OF.get(multiplied or "")
    instruction = _INSTRUCTION.search(rest)
    return {
        "input_type": stored,
        "accumulate_type": accumulated,
        "output_type": type_of(groups.get("out")),
        "pipe": pipe,
        "tensor_core": tensor,
        "instruction": instruction[1] if instruction
        else groups.get("inst") or _SHAPES.get(mma or ""),
    }  # fmt: skip


def _on_tensor_cores(groups: Mapping[str, str | None], rest: str) -> bool | None:
    """Return whether tensor cores multiply, as far as the name says it."""
    unit = groups.get("cls")
    if unit:
        return unit != "simt"
    if groups.get("inst") or groups.get("mma"):
        return True
    if groups.get("mul"):  # XMMA: the instruction is in the rest
        if "ffma" in rest or "_simt" in rest:
            return False
        return True if "_tensor" in rest or "warpgroup" in rest else None
    return False if groups.get("letter") else None


def _implied(letter: str | None, mma: str | None, groups: Mapping[str, str | None]) -> str | None:
    """Return the type that an instruction multiplies where the name does not spell it."""
    sm, arch = groups.get("sm"), groups.get("arch")
    old = arch in ("volta", "turing") or sm in ("70", "72", "75")
    if letter in ("d", "z", "gz"):
        return "fp64"
    if letter == "i":
        return {"8816": "int8", "16816": "int8", "16832": "int8", "8832": "int4",
                "16864": "int4"}.get(mma or "")  # fmt: skip
    if letter == "h" or mma == "884":
        return "fp16"
    if mma in ("1684", "1688"):
        return "fp16" if old else "tf32"
    return None


def _classic(groups: Mapping[str, str | None], _fields: Fields, _rest: str) -> Fields:
    return {"family": "cudnn"} if groups.get("kind") == "cudnn" else {}


def _nvjet(groups: Mapping[str, str | None], _fields: Fields, _rest: str) -> Fields:
    """Read ``hsh`` (A and B, accumulator, output) and ``qqtst`` (A, B, C, accumulator, output)."""
    letters = groups.get("letters") or ""
    first = letters[0] if len(letters) in (3, 5) else ""
    stored = _NVJET.get(first)
    pipe = TENSOR_PIPE_OF.get(stored or "")
    return {
        "input_type": stored,
        "accumulate_type": _NVJET.get(letters[-2]) if first else None,
        "output_type": _NVJET.get(letters[-1]) if first else None,
        "pipe": pipe,
        "tensor_core": True if pipe else None,
    }


def _xmma(groups: Mapping[str, str | None], fields: Fields, rest: str) -> Fields:
    if fields["operation"] == "pooling":
        direction = "forward" if "fw_" in rest else None
        return {"pipe": None, "tensor_core": False, "direction": direction}
    if groups.get("helper"):
        return {"operation": "setup", "auxiliary": True, "pipe": None, "tensor_core": None}
    if "split_k_kernel" in rest:  # it adds up what execute_kernel wrote
        return {"operation": "reduction", "auxiliary": True, "pipe": None, "tensor_core": None}
    if groups.get("cls") and not groups.get("a"):
        return _multiplying(groups)
    return {}


def _multiplying(groups: Mapping[str, str | None]) -> Fields:
    """Read ``Volta_hmma_…_fp32`` and ``Ampere_hmma_tf32_traits``: the unit and one type."""
    said = type_of(groups.get("acc"))
    if groups.get("cls") == "imma":
        return {"input_type": "int8", "accumulate_type": "int32", "pipe": "IMMA"}
    stored = said if said in ("tf32", "bf16") else "fp16"
    accumulated = said if said in ("fp32", "fp16") else "fp32"
    return {
        "input_type": "fp32" if stored == "tf32" else stored,
        "accumulate_type": accumulated,
        "pipe": TENSOR_PIPE_OF[stored],
    }


def _attention(groups: Mapping[str, str | None], _fields: Fields, _rest: str) -> Fields:
    """Read fused attention, which tensor cores do in every type they have."""
    stored, sm = type_of(groups.get("a")), int(groups.get("sm") or 80)
    if (groups.get("what") or "").startswith("dot_do_o"):  # sums, before the gradient itself
        return {"input_type": stored, "tensor_core": False, "auxiliary": True}
    if stored is None:
        return {}
    fits = sm >= {"fp32": 80, "bf16": 80, "fp16": 70}.get(stored, 75)
    pipe = TENSOR_PIPE_OF.get("tf32" if stored == "fp32" else stored) if fits else None
    if not fits and stored == "fp32":
        pipe = "FFMA"
    return {
        "input_type": stored, "accumulate_type": "fp32", "pipe": pipe, "tensor_core": fits,
        "tile_k": _number(groups.get("hdim")),
    }  # fmt: skip


def _cudnn(groups: Mapping[str, str | None], _fields: Fields, _rest: str) -> Fields:
    stored = type_of(groups.get("sixteen"))
    if stored is not None and stored not in ("fp16", "bf16"):
        return {"input_type": "fp8", "pipe": "FP8", "tensor_core": True}
    return {"tensor_core": True} if groups.get("cls") else {}


def _inductor(groups: Mapping[str, str | None], _fields: Fields, rest: str) -> Fields:
    kind = groups.get("kind") or ""
    if kind in ("poi", "for"):
        return {"operation": "elementwise", "tensor_core": False}
    if kind in ("red", "per"):
        return {"operation": word_in(FUNCTORS["inductor_reduction"], rest).operation,
                "tensor_core": False}  # fmt: skip
    return {"operation": word_in(FUNCTORS["inductor"], f"{rest}_").operation}


def _cupy(groups: Mapping[str, str | None], _fields: Fields, _rest: str) -> Fields:
    said, _, spelled = (groups.get("kind") or "").partition("__")
    word = word_in(FUNCTORS["cupy"], said, whole=True)
    types = [TYPES.get(each) for each in spelled.split("_") if each and each[-1].isdigit()]
    kinds = {each for each in types if each is not None}
    pipe = word.pipe
    if pipe is None and word.operation is not None and kinds:
        floats = kinds & {"fp16", "fp32", "fp64", "complex64", "complex128"}
        pipe = CORE_PIPE_OF.get(next(iter(kinds))) if len(kinds) == 1 else None
        pipe = pipe if floats else "ALU"
    return {
        "operation": word.operation, "pipe": pipe,
        "tensor_core": False if word.operation else None,
        "input_type": types[0] if types else None, "output_type": types[-1] if types else None,
    }  # fmt: skip


def word_in(words: tuple[Word, ...], text: str, *, whole: bool = False) -> Word:
    """Return the first word of which a piece stands in `text`; one that says nothing if none does.

    Parameters
    ----------
    words : tuple of Word
        A table.
    text : str
        Where to look.
    whole : bool
        Whether pieces are whole words of the text, between underscores.
    """
    parts: Container[str] = frozenset(text.split("_")) if whole else text
    for pieces, word in _pieces(words):
        if not pieces:
            return word
        for piece in pieces:
            if piece in parts:
                return word
    return _SILENT


@cache
def _pieces(words: tuple[Word, ...]) -> tuple[tuple[tuple[str, ...], Word], ...]:
    return tuple((tuple(word.hints.split()), word) for word in words)


_SILENT = Word("", None)

_SPECIAL = {
    "cublas": _classic, "nvjet": _nvjet, "xmma": _xmma, "cutlass_fmha": _attention,
    "trt_fmha": _attention, "flash_attention": _attention, "cudnn": _cudnn,
    "inductor": _inductor, "cupy": _cupy,
}  # fmt: skip
