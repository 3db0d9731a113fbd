"""Types in the template arguments and parameters of a kernel, and the pipe that they prove."""

from __future__ import annotations

import re

from kernelscope.metrics.decoder_tables.rows import CORE_PIPE_OF, TYPES, Function

_LOOK = 400
"""Characters in which the leading template arguments stand."""

_FLOATS = re.compile(
    r"\b(?=[fdchbtF_B])(?:float[24]?|double2?|c10::Half|c10::BFloat16|__half2?|half_t|half|"
    r"__nv_bfloat162?|"
    r"bfloat16_t|bfloat16|__bfloat|tfloat32_t|__nv_fp8_e4m3|__nv_fp8_e5m2|Float8_e4m3fn|"
    r"Float8_e5m2|float_e4m3_t|float_e5m2_t|c10::complex|thrust::complex|cuComplex|"
    r"cuDoubleComplex)\b"
)
_WHOLE = re.compile(
    r"(?:lambda\(|<|, )(?:const )?(?:int|long|bool|short|char|signed char|unsigned char|"
    r"long long)\b(?! \*)"
)
_LEADING = re.compile(r"[^,<>()]+")


def float_types(arguments: str, parameters: str) -> tuple[str, ...]:
    """Return the distinct floating-point types of a kernel, in the order of their first mention.

    Parameters
    ----------
    arguments, parameters : str
        The kernel's template arguments; where it has none, its parameters are looked at.
    """
    found = dict.fromkeys(_FLOATS.findall(arguments or parameters))
    return tuple(dict.fromkeys(TYPES.get(each.rpartition("::")[2], each) for each in found))


def core_pipe(types: tuple[str, ...], arguments: str) -> str | None:
    """Return the pipe of CUDA cores that one type alone proves.

    FP16 and BF16 prove none: many kernels convert them, and compute in FP32.
    """
    if len(types) == 1:
        return CORE_PIPE_OF.get(types[0])
    if types or not arguments:
        return None
    return "ALU" if _WHOLE.search(f"<{arguments}") else None


_INTEGERS = {
    "int": "int32", "unsigned int": "uint32", "long": "int64", "unsigned long": "uint64",
    "long long": "int64", "bool": "bool", "unsigned char": "uint8", "signed char": "int8",
    "short": "int16", "unsigned short": "uint16",
}  # fmt: skip


def argument_types(row: Function, arguments: str, types: tuple[str, ...]) -> dict[str, str | None]:
    """Return the types that the first template arguments are; else what is read is the first.

    Parameters
    ----------
    row : Function
        The row of the tables, whose ``template`` says what each argument is.
    arguments : str
        The template arguments.
    types : tuple of str
        As :func:`float_types` returns them.
    """
    mixed = row.operation is None and (len(types) > 1 or "WithCast" in arguments)
    said: dict[str, str | None] = {"input_type": types[0] if types and not mixed else None}
    if not row.template:
        return said
    leading = _LEADING.findall(arguments[:_LOOK])
    for role, text in zip(row.template.split(), leading, strict=False):
        plain = text.strip().rpartition("::")[2]
        key = {"in": "input_type", "acc": "accumulate_type", "out": "output_type"}.get(role)
        if key:
            said[key] = TYPES.get(plain) or _INTEGERS.get(plain)
    return said
