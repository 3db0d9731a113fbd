"""What does a kernel's name say of its work: library, operation, types, pipe, tile?

The name of a library's kernel often spells which unit multiplies what: ``…f32f32…ffma…`` is FP32
on CUDA cores, ``s1688gemm`` for Ampere TF32 on tensor cores. :func:`decode` reads that by tables
(:mod:`decoder_tables`), and abstains where a name does not say it: *unknown* is a result, and
nobody's guess. A pipe is given only where a type or an instruction in the name proves it, or the
function is known to run on it whatever its types.

Work is bounded: the first :data:`kernel_names.LONGEST_HEAD` characters are looked at, pieces are
searched for before any regular expression runs, and none of these nests quantifiers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from kernelscope.metrics.argument_types import argument_types, core_pipe, float_types
from kernelscope.metrics.decoder_tables.functions import FUNCTIONS
from kernelscope.metrics.decoder_tables.functors import FUNCTORS
from kernelscope.metrics.decoder_tables.grammars import GRAMMARS
from kernelscope.metrics.decoder_tables.namespaces import FORMS, NAMESPACES, WORDS
from kernelscope.metrics.decoder_tables.rows import MATRIX, TENSOR_PIPES, Function, Word
from kernelscope.metrics.grammar_groups import Fields, read_groups, word_in
from kernelscope.metrics.kernel_names import LONGEST_HEAD, function_name, name_parts

_NEAR = 400
"""Characters of a name in which a spelled name begins."""

_SHOWN = 120
"""Characters of a name that are shown as evidence."""

_OPEN = MATRIX | {None, "collective"}
"""Operations that do not say whether tensor cores are used."""

_NOT_BY_TYPE = frozenset({"random", "index", "layout", "setup"})
"""Operations whose types do not say whether they do arithmetic in them."""

_NEVER_SPELLED = ("at::", "Eigen::", "cub::", "thrust::", "tensorflow::")
"""What no spelled name begins with; most long names begin so."""

_HINTS = tuple((hint, grammar) for grammar in GRAMMARS for hint in grammar.hints)


@dataclass(frozen=True, slots=True)
class KernelName:
    """What a kernel's name says. None is: it does not say.

    Attributes
    ----------
    name : str
        The name that was read, demangled where it was mangled.
    function : str
        The qualified function, without template arguments and parameters.
    family : str or None
        Whose kernel it is: a library, or the compiler that made it.
    operation : str or None
        What it computes, one of ``rows.OPERATIONS``.
    direction : str or None
        The pass of training, one of ``rows.DIRECTIONS``.
    input_type, accumulate_type, output_type : str or None
        ``fp32``, ``bf16``, ``e4m3``, …: of the inputs in memory, of sums, of what is written.
    pipe : str or None
        Where its arithmetic runs, one of ``rows.PIPES``.
    tensor_core : bool or None
        Whether it uses tensor cores.
    instruction : str or None
        Shape of the matrix instruction, ``16x8x16``.
    tile_m, tile_n, tile_k : int or None
        The tile of a block; of attention: queries, keys, head dimension.
    stages : int or None
        Buffers of the software pipeline.
    split_k : bool
        Whether the name says that the inner dimension is split among blocks.
    layout : str or None
        ``nn``, ``tn``, … of matrices (A, B and, where said, C), ``nhwc``, ``nchw`` of images.
    architecture : str or None
        For which GPUs it was written, which need not be the one that it runs on.
    auxiliary : bool
        Whether it only serves another kernel: none of the model's work is its own.
    certainty : str
        ``certain``; ``likely`` where others may use such a name; ``unknown``.
    evidence : str
        The piece of the name that says it; empty where there is none.
    """

    name: str
    function: str
    family: str | None = None
    operation: str | None = None
    direction: str | None = None
    input_type: str | None = None
    accumulate_type: str | None = None
    output_type: str | None = None
    pipe: str | None = None
    tensor_core: bool | None = None
    instruction: str | None = None
    tile_m: int | None = None
    tile_n: int | None = None
    tile_k: int | None = None
    stages: int | None = None
    split_k: bool = False
    layout: str | None = None
    architecture: str | None = None
    auxiliary: bool = False
    certainty: str = "unknown"
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class _Parts:
    """A name cut into what the tables look at."""

    near: str
    text: str
    function: str
    arguments: str
    parameters: str

    @property
    def own(self) -> str:
        return self.function.rpartition("::")[2]


def decode(name: str) -> KernelName:
    """What does a kernel's name say of its work?

    Parameters
    ----------
    name : str
        A full kernel name, as C++ or mangled (Itanium ABI).

    Returns
    -------
    KernelName
        What the name proves. Mangled and demangled names say the same. Never raises.
    """
    return decode_all((name,))[0]


@lru_cache(maxsize=4)
def decode_all(names: tuple[str, ...]) -> tuple[KernelName, ...]:
    """Decode distinct names; see :func:`decode`.

    Parameters
    ----------
    names : tuple of str, length n
        Distinct names, such as the categories of a column.
    """
    if any(name.startswith("_Z") for name in names):
        from kernelscope.parsers.demangle import demangled  # noqa: PLC0415 - rarely needed

        plain = demangled(names)
        names = tuple(plain[name] for name in names)
    return tuple(map(_decoded, names))


def _decoded(name: str) -> KernelName:
    parts = _parts(name)
    for reader in (_spelled, _listed, _communicating, _formed, _of_namespace, _of_parameters):
        fields = reader(parts)
        if fields:
            _settle(fields)
            return KernelName(name, parts.function, **fields)
    return KernelName(name, parts.function)


def _parts(name: str) -> _Parts:
    text = name[:LONGEST_HEAD]
    if name.startswith("_Z"):  # too costly to demangle, or damaged
        return _Parts(text[:_NEAR], text, function_name(text), "", "")
    function, arguments, parameters = name_parts(text)
    return _Parts(text[:_NEAR], text, function, arguments, parameters)


def _settle(fields: Fields) -> None:
    """Say whether tensor cores are used, where pipe or operation tell."""
    pipe = fields.get("pipe")
    if pipe is not None:
        fields["tensor_core"] = pipe in TENSOR_PIPES
    elif "tensor_core" not in fields and fields.get("operation") not in _OPEN:
        fields["tensor_core"] = False


# ---------------------------------------------------------------------------------------------
# Readers: each returns fields of a KernelName, or nothing where its table does not know the name
# ---------------------------------------------------------------------------------------------


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _spelled(parts: _Parts) -> Fields | None:
    near = parts.near
    if parts.function.startswith(_NEVER_SPELLED):
        return None
    for hint, grammar in _HINTS:
        if hint in near or (grammar.deep and hint in parts.text):
            match = _compiled(grammar.pattern).search(parts.text if grammar.deep else near)
            if match:
                said = read_groups(grammar, match.groupdict())
                return said | {"certainty": "certain", "evidence": match[0][:_SHOWN]}
    return None


@cache
def _functions() -> tuple[dict[str, list[Function]], dict[int, dict[str, list[Function]]]]:
    """Return the listed functions by whole name, and those listed by their beginning by length."""
    whole: dict[str, list[Function]] = {}
    beginnings: dict[int, dict[str, list[Function]]] = {}
    for row in FUNCTIONS:
        for name in row.names.split():
            if name.endswith("*"):
                of_length = beginnings.setdefault(len(name) - 1, {})
                of_length.setdefault(name[:-1], []).append(row)
            else:
                whole.setdefault(name, []).append(row)
    return whole, dict(sorted(beginnings.items(), reverse=True))


def _listed(parts: _Parts) -> Fields | None:
    row, evidence = _row_of(parts.function)
    if row is None:
        return None
    said = _of_function(row, parts)
    return said | {"certainty": row.certainty, "auxiliary": row.auxiliary, "evidence": evidence}


@lru_cache(maxsize=4096)
def _row_of(function: str) -> tuple[Function | None, str]:
    """Return the row that lists a qualified function, and as what."""
    whole, beginnings = _functions()
    own = function.rpartition("::")[2]
    for row in whole.get(own, ()):
        if row.scope in function:
            return row, own
    for length, names in beginnings.items():
        for row in names.get(own[:length], ()):
            if row.scope in function:
                return row, f"{own[:length]}*"
    return None, ""


def _of_function(row: Function, parts: _Parts) -> Fields:
    family, operation, direction, pipe = row.family, row.operation, row.direction, row.pipe
    functors = FUNCTORS.get(family, ())
    if family == "multi_tensor":
        family = "aten" if "at::native" in parts.text else "apex"
    if operation is None and functors:
        word = word_in(functors, parts.arguments)
        operation, direction, pipe = word.operation, word.direction, word.pipe
        if row.family == "aten" and operation is None:
            operation = "elementwise"
    types = float_types(parts.arguments, parts.parameters)
    if pipe == "FFMA" and "fp64" in types:
        pipe = "DFMA"
    converts = operation == "copy" and row.operation is None
    cores = row.cores or operation not in MATRIX | {None}
    if pipe is None and cores and operation not in _NOT_BY_TYPE and not converts:
        pipe = core_pipe(types, parts.arguments)
    return {
        "family": family,
        "operation": operation,
        "direction": direction,
        "pipe": pipe,
        "tensor_core": False if cores else None,
        **({} if converts else argument_types(row, parts.arguments, types)),
    }


def _communicating(parts: _Parts) -> Fields | None:
    family = _communicator(parts.function)
    if family is None:
        return None
    return {"family": family, "operation": "collective", "certainty": "certain",
            "evidence": parts.function[:_SHOWN]}  # fmt: skip


@lru_cache(maxsize=4096)
def _communicator(function: str) -> str | None:
    """Return whose function communicates between GPUs; None of any other."""
    from kernelscope.metrics.communication_names import recognise  # noqa: PLC0415 - own regexes

    (known,) = recognise((function,))
    if known is None:
        return None
    return _LIBRARIES.get(known.library, known.library.lower().replace(" ", "_"))


_LIBRARIES = {"NCCL, RCCL": "nccl", "MSCCL++": "mscclpp"}


def _formed(parts: _Parts) -> Fields | None:
    numba = _NUMBA.search(parts.near)
    if numba:
        return {"family": "numba", "certainty": "certain", "evidence": numba[0][-_SHOWN:]}
    for form in FORMS:
        for hint in form.hints:
            if hint in parts.function:
                break
        else:
            continue
        if _compiled(form.pattern).fullmatch(parts.function[:_NEAR]):
            return {"family": form.family, "operation": form.operation,
                    "certainty": form.certainty,
                    "evidence": parts.function[:_SHOWN]}  # fmt: skip
    return None


_NUMBA = re.compile(r"^[\w.$<>:]{0,200}\[(?:abi:)?v\d+[,\]]|^(?:__main__|cudapy)::")


def _of_namespace(parts: _Parts) -> Fields | None:
    namespace, colons, _ = parts.function.partition("::")
    family = NAMESPACES.get(namespace) if colons else None
    if family is None:
        return None
    word = word_in(WORDS, parts.own)
    return _likely(family, word, parts, f"{namespace}::")


def _likely(family: str, word: Word, parts: _Parts, evidence: str) -> Fields:
    said = {"family": family, "operation": word.operation, "certainty": "likely",
            "evidence": evidence}  # fmt: skip
    if word.operation in MATRIX | {None}:
        return said | _cutlass(family, parts)
    types = float_types(parts.arguments, parts.parameters)
    return said | {"input_type": types[0] if types else None, "pipe": None, "tensor_core": False}


def _cutlass(family: str, parts: _Parts) -> Fields:
    """Return what CUTLASS 2's C++ types say of the unit that multiplies."""
    if family != "cutlass":
        return {}
    if "OpClassSimt" in parts.text:
        return {"tensor_core": False}
    return {"tensor_core": True} if "OpClassTensorOp" in parts.text else {}


_OWNERS = (
    ("cublas", "cublas"), ("cudnn", "cudnn"), ("THCDeviceTensor", "aten"), ("at::", "aten"),
    ("Eigen::", "eigen"), ("tensorflow::", "tensorflow"), ("TensorInfo<", "aten"),
)  # fmt: skip
"""What a library's own types begin with → the library. Only what it launches takes them."""

_SIGNATURES = {
    "cleanup(float*,float*,float*,float*,bool,int)": ("apex", "reduction"),
}
"""Whole names, without blanks, that only one library has."""


def _of_parameters(parts: _Parts) -> Fields | None:
    known = _SIGNATURES.get(parts.near.replace(" ", ""))
    if known:
        return _likely(known[0], Word("", known[1]), parts, parts.near)
    for piece, family in _OWNERS:
        if piece in parts.parameters or piece in parts.arguments:
            return _likely(family, word_in(WORDS, parts.own), parts, piece)
    return None
