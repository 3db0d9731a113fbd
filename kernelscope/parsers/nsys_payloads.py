"""Structured NVTX payloads of communication libraries: message sizes, and ranks of communicators.

NCCL (2.15 on) attaches the size of the message to its ranges, later the communicator, too, and
the number of ranks to those that make a communicator. Nsight Systems exports payloads only with
``--include-blobs=true``, as ``NVTX_EVENTS.binaryData``; ``NVTX_PAYLOAD_SCHEMA_ENTRIES`` says what
stands at which offset. A blob is a head of 32 bytes (domain, 0, schema, 0 as 32 bits each; size
of the payload and of the whole blob as 64 bits) and the payload. That layout is nowhere
documented: a blob whose two sizes are not its own, or whose schema is not described in the file,
is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.parsers import nsys_names as names
from kernelscope.parsers.convert import integers
from kernelscope.parsers.nsys_export import Export
from kernelscope.trace import Array, Categorical, is_missing, missing_value

Int64s = npt.NDArray[np.int64]

MESSAGE, COMMUNICATOR, RANKS = "Message size [bytes]", "NCCL communicator ID", "No. of ranks"
"""What NCCL calls the entries (src/include/nvtx_payload_schemas.h)."""

HEAD_BYTES = 32

_WIDTHS: dict[int, str] = {5: "<i4", 6: "<u4", 17: "<i8", 18: "<i8", 22: "<i8"}
"""NVTX's types of entries (nvToolsExtPayload.h): INT, UINT, INT64, UINT64, SIZE."""

_MISSING = missing_value(np.dtype(np.int64))

Field = tuple[int, str]
Schemas = dict[tuple[int, int], dict[str, Field]]


def message_payloads(export: Export, rows: int) -> dict[str, Array | None]:
    """Return ``message_bytes`` and ``communicator_ranks`` of NVTX events, shape (rows,) each.

    None where no payload of the kind was exported.
    """
    nothing: dict[str, Array | None] = {"message_bytes": None, "communicator_ranks": None}
    schemas = _schemas(export)
    if not any(MESSAGE in fields for fields in schemas.values()):
        return nothing
    if export.metadata.get("EXPORT_PARAM_INCLUDE_BLOBS", "").lower() == "false":
        return nothing  # spares a pass over the table
    places, blobs = export.file.read_blobs(names.NVTX, "binaryData")
    if not blobs:
        return nothing
    found = {name: np.full(rows, _MISSING) for name in (MESSAGE, COMMUNICATOR, RANKS)}
    place = np.array(places, dtype=np.int64)
    for length in sorted(set(map(len, blobs))):
        if length > HEAD_BYTES:
            mine = [i for i, blob in enumerate(blobs) if len(blob) == length]
            _decode([blobs[i] for i in mine], place[mine], schemas, found)
    return {
        "message_bytes": np.where(found[MESSAGE] < 0, _MISSING, found[MESSAGE]),
        "communicator_ranks": _ranks(found[COMMUNICATOR], found[RANKS]),
    }


def _schemas(export: Export) -> Schemas:
    """Return offset and type of the entries of each (domain, schema) that NCCL's ranges use.

    A schema that two processes describe differently is not known.
    """
    table = export.file.read(
        "NVTX_PAYLOAD_SCHEMA_ENTRIES", ("domainId", "schemaId", "type", "name", "offset")
    ).columns
    name = table.get("name")
    numbers = {key: integers(raw) for key, raw in table.items() if key != "name"}
    domain, schema, kind = (numbers.get(key) for key in ("domainId", "schemaId", "type"))
    if not isinstance(name, Categorical) or domain is None or schema is None or kind is None:
        return {}
    offset = numbers.get("offset")
    found: Schemas = {}
    disputed: set[tuple[int, int]] = set()
    for row in range(len(domain)):
        code = int(name.codes[row])
        label = name.categories[code] if code >= 0 else ""
        if label not in (MESSAGE, COMMUNICATOR, RANKS) or int(kind[row]) not in _WIDTHS:
            continue
        key = int(domain[row]), int(schema[row])
        at = 0 if offset is None or is_missing(offset[row : row + 1])[0] else int(offset[row])
        field = at, _WIDTHS[int(kind[row])]
        if found.setdefault(key, {}).setdefault(label, field) != field:
            disputed.add(key)
    return {key: fields for key, fields in found.items() if key not in disputed}


def _decode(
    blobs: Sequence[bytes], place: Int64s, schemas: Schemas, found: dict[str, Int64s]
) -> None:
    """Read blobs of equal length into the columns of `found`."""
    length = len(blobs[0])
    raw = np.frombuffer(b"".join(blobs), dtype=np.uint8).reshape(-1, length)

    def column(offset: int, kind: str) -> npt.NDArray[Any]:
        width = np.dtype(kind).itemsize
        return np.ascontiguousarray(raw[:, offset : offset + width]).view(kind)[:, 0]

    sound = (column(16, "<u8") == length - HEAD_BYTES) & (column(24, "<u8") == length)
    domain, schema = column(0, "<u4"), column(8, "<u4")
    for (of_domain, of_schema), fields in schemas.items():
        mine = sound & (domain == of_domain) & (schema == of_schema)
        for name, (offset, kind) in fields.items():
            if HEAD_BYTES + offset + np.dtype(kind).itemsize <= length:
                found[name][place[mine]] = column(HEAD_BYTES + offset, kind)[mine]


def _ranks(communicator: Int64s, ranks: Int64s) -> Int64s:
    """Give every event the ranks of its communicator; missing where two makings disagree."""
    known: dict[int, int] = {}
    made = (communicator != _MISSING) & (communicator != 0) & (ranks > 0)
    for which, count in zip(communicator[made].tolist(), ranks[made].tolist(), strict=True):
        if known.setdefault(which, count) != count:
            known[which] = _MISSING
    result = np.full(len(communicator), _MISSING)
    for which, count in known.items():
        result[communicator == which] = count
    return result
