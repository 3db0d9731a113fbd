"""Structured NVTX payloads of NCCL in an Nsight Systems export, as far as the file holds them."""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path
from typing import Any

import pytest

import kernelscope as ks
from kernelscope import oracle

DOMAIN = 3
INIT, MESSAGE, BARE = 16777218, 16777223, 16777230
ENTRIES = [
    (DOMAIN, INIT, 0, 18, "NCCL communicator ID", None),
    (DOMAIN, INIT, 1, 5, "No. of ranks", 8),
    (DOMAIN, INIT, 2, 5, "Rank", 12),
    (DOMAIN, MESSAGE, 0, 18, "NCCL communicator ID", None),
    (DOMAIN, MESSAGE, 1, 22, "Message size [bytes]", 8),
    (DOMAIN, MESSAGE, 2, 16777232, "Reduction operation", 16),
    (DOMAIN, BARE, 0, 18, "NCCL communicator ID", None),
]
BIG = (1 << 64) - 5
"""A communicator's hash uses all 64 bits."""


def blob(schema: int, payload: bytes, *, domain: int = DOMAIN, **head: int) -> bytes:
    size = head.get("size", len(payload))
    total = head.get("total", 32 + len(payload))
    return struct.pack("<IIIIQQ", domain, 0, schema, 0, size, total) + payload


def init(communicator: int, ranks: int) -> bytes:
    return blob(INIT, struct.pack("<QiiiI", communicator, ranks, 0, 0, 0))


def message(communicator: int, size: int) -> bytes:
    return blob(MESSAGE, struct.pack("<QQiI", communicator, size, 0, 0))


def exported(
    tmp_path: Path, *events: tuple[str, bytes | None], entries: Any = ENTRIES, blobs: str = "true"
) -> list[tuple[str | None, int | None, int | None]]:
    """Write one NVTX range per event, and return what is read of each."""
    run = oracle.Run().kernel(100, 200, "gemm", call=(40, 50))
    path = oracle.write(run.plan(), tmp_path / "t.sqlite", generation="2025.5")
    with sqlite3.connect(path) as db:
        have = [row[0] for row in db.execute("SELECT name FROM sqlite_master")]
        if "NVTX_EVENTS" not in have:
            db.execute(
                "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER,"
                " text TEXT, globalTid INTEGER, domainId INTEGER, binaryData BLOB)"
            )
        db.execute(
            "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER, schemaId INTEGER,"
            " idx INTEGER, flags INTEGER, type INTEGER, name TEXT, offset INTEGER)"
        )
        db.executemany(
            "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId, schemaId, idx, type, name, offset)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            entries,
        )
        db.execute("DELETE FROM META_DATA_EXPORT WHERE name = 'EXPORT_PARAM_INCLUDE_BLOBS'")
        db.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PARAM_INCLUDE_BLOBS', ?)", [blobs])
        for i, (name, data) in enumerate(events):
            db.execute(
                "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId,"
                " binaryData) VALUES (?, ?, 59, ?, ?, ?, ?)",
                (10 * i, 10 * i + 5, name, (1 << 24) + 1, DOMAIN, data),
            )
    db.close()
    ranges = ks.read(path).ranges
    columns = (ranges.values(name) for name in ("name", "message_bytes", "communicator_ranks"))
    return list(zip(*columns, strict=True))


def test_sizes_and_ranks(tmp_path: Path) -> None:
    assert exported(
        tmp_path,
        ("step", None),
        ("ncclCommInitRank", init(BIG, 8)),
        ("ncclAllReduce", message(BIG, 4096)),
        ("ncclGroupEnd", blob(BARE, struct.pack("<Q", BIG))),
        ("ncclSend", message(77, 16)),
    ) == [
        ("step", None, None),
        ("ncclCommInitRank", None, 8),
        ("ncclAllReduce", 4096, 8),
        ("ncclGroupEnd", None, 8),
        ("ncclSend", 16, None),  # its communicator was made before the capture began
    ]


def test_early_payloads_hold_the_size_alone(tmp_path: Path) -> None:
    entries = [(DOMAIN, 1, 0, 22, "Message size [bytes]", None)]
    found = exported(tmp_path, ("ncclAllGather", blob(1, struct.pack("<Q", 512))), entries=entries)
    assert found == [("ncclAllGather", 512, None)]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 31,
        b"\0" * 56,
        message(1, 4096)[:-1],
        message(1, 4096) + b"\0",
        blob(MESSAGE, struct.pack("<QQiI", 1, 4096, 0, 0), total=55),
        blob(MESSAGE, struct.pack("<QQiI", 1, 4096, 0, 0), size=23),
        blob(MESSAGE, struct.pack("<QQiI", 1, 4096, 0, 0), domain=DOMAIN + 1),
        blob(MESSAGE + 100, struct.pack("<QQiI", 1, 4096, 0, 0)),
        blob(MESSAGE, struct.pack("<Q", 1)),  # too short for its own schema
        message(1, (1 << 64) - 1),
    ],
)
def test_what_is_no_payload_is_left_alone(tmp_path: Path, data: bytes) -> None:
    found = exported(tmp_path, ("ncclAllReduce", data), ("ncclReduce", message(1, 8)))
    assert found == [("ncclAllReduce", None, None), ("ncclReduce", 8, None)]


def test_two_processes_that_describe_a_schema_differently(tmp_path: Path) -> None:
    entries = [*ENTRIES, (DOMAIN, MESSAGE, 0, 22, "Message size [bytes]", None)]
    found = exported(tmp_path, ("ncclAllReduce", message(1, 4096)), entries=entries)
    assert found == [("ncclAllReduce", None, None)]


def test_two_processes_that_describe_a_schema_alike(tmp_path: Path) -> None:
    found = exported(tmp_path, ("ncclAllReduce", message(1, 4096)), entries=[*ENTRIES, *ENTRIES])
    assert found == [("ncclAllReduce", 4096, None)]


def test_communicators_of_one_id_and_different_ranks(tmp_path: Path) -> None:
    found = exported(
        tmp_path,
        ("ncclCommInitRank", init(5, 8)),
        ("ncclCommInitRank", init(5, 4)),
        ("ncclAllReduce", message(5, 4096)),
    )
    assert found[-1] == ("ncclAllReduce", 4096, None)


@pytest.mark.parametrize("blobs", ["true", "false"])
def test_an_export_without_blobs(tmp_path: Path, blobs: str) -> None:
    found = exported(tmp_path, ("ncclAllReduce", None), blobs=blobs)
    assert found == [("ncclAllReduce", None, None)]
