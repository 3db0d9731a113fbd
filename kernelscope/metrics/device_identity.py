"""Which (process, CUDA ordinal) is which physical GPU, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import results
from kernelscope.metrics.grouping import Groups, Key, group
from kernelscope.metrics.occupancy import Limits
from kernelscope.trace import Categorical, Table, Trace, missing_value

NOT_ON_DEVICE = frozenset({"HtoH"})
"""Kinds of copy that run on the host alone."""

_LIMITS = (
    "compute_major",
    "sm_count",
    "max_blocks_per_sm",
    "max_warps_per_sm",
    "max_registers_per_sm",
    "max_shared_bytes_per_sm",
)

Lane = tuple[int | None, int]
"""A process and its own ordinal of a device."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Lanes and the physical devices that they share.

    Attributes
    ----------
    lanes : tuple of (process_id, device_id)
        Every lane with kernels or copies on the device, by device, process and ordinal.
    index : tuple of int
        The physical device of each lane: the row of ``devices``.
    physical_ids : tuple of str or None
        Of each physical device; None where it cannot be told from others.
    described : tuple of dict
        What the capture says of each lane's GPU, None where missing; empty where nothing.
    elsewhere : dict of lane to int
        The physical device of lanes that only peer copies name.
    """

    lanes: tuple[Lane, ...]
    index: tuple[int, ...]
    physical_ids: tuple[str | None, ...]
    described: tuple[dict[str, Any], ...]
    elsewhere: dict[Lane, int]

    def device_of(self, lane: Lane) -> int | None:
        """Return the physical device of a lane, None where it is not known to be one of them."""
        if lane in self.lanes:
            return self.index[self.lanes.index(lane)]
        return self.elsewhere.get(lane)

    def names(self) -> list[str | None]:
        """Return the product name of each lane's GPU."""
        return [each.get("name") for each in self.described]


def on_device(copies: Table) -> npt.NDArray[np.bool_] | None:
    """Return which copies occupy a device; None where all do."""
    kinds = copies.categories("kind")
    if NOT_ON_DEVICE.isdisjoint(kinds):
        return None
    # One entry more: a code of −1 (no kind) reads it.
    occupies = np.array([kind not in NOT_ON_DEVICE for kind in kinds] + [True])
    return np.asarray(occupies[copies["kind"]])


def lane_of(key: Key) -> Lane:
    """Return the lane of a group of device work: a trace holds none without a device."""
    process, device, *_ = key
    if device is None:
        raise ValueError("device work without a device belongs in the quarantine")
    return process, device


def lanes_of(table: Table) -> Groups:
    """Number the rows of kernels or copies by process and device."""
    return group(table["process_id"], table["device_id"])


def identify(trace: Trace) -> Identity:
    """Find the physical devices behind the (process, ordinal) pairs of a trace.

    A lane's GPU is known by the UUID of a row of `devices` that identifies, else by its GPU id
    where it identifies; else by the ordinal where only one process uses that; else it stays
    apart.
    """
    copies = trace.copies
    occupying = on_device(copies)
    used = copies if occupying is None else copies.take(occupying)
    found = {key for table in (trace.kernels, used, trace.graphs) for key in lanes_of(table).keys}
    lanes: list[Lane] = [lane_of(key) for key in found]
    rows = trace.devices.records()
    uuids = _uuid_of_gpu(rows)
    known = {lane: _evidence(lane, rows, uuids) or _by_ordinal(lane, lanes) for lane in lanes}

    least: dict[tuple[str, str], int] = {}  # people expect GPU 0 first, where only UUIDs are known
    for lane in sorted(lanes, key=lambda lane: lane[1]):
        least.setdefault(known[lane].key, lane[1])

    def place(lane: Lane) -> tuple[int, int, int, str, int, int]:
        rank, gpu, uuid = known[lane].rank
        return rank, gpu, least[known[lane].key], uuid, _number(lane[0]), lane[1]

    order = sorted(lanes, key=place)
    numbers: dict[tuple[str, str], int] = {}
    index = tuple(numbers.setdefault(known[lane].key, len(numbers)) for lane in order)
    peers = {lane: _evidence(lane, rows, uuids) for lane in _peers(used) - set(lanes)}
    elsewhere = {
        lane: numbers[which.key] for lane, which in peers.items() if which and which.key in numbers
    }
    ids = {which.key: which.physical_id for which in known.values()}
    return Identity(
        tuple(order),
        index,
        tuple(ids[key] for key in numbers),
        tuple(_description(lane, rows) for lane in order),
        elsewhere,
    )


def device_ordinals(trace: Trace, identity: Identity | None = None) -> Table:
    """Which (process, CUDA ordinal) is which GPU?

    Every pair with kernels or copies on the device has a row, whether it is active in the
    window or not; GPUs that the capture describes and nothing used have none.

    Parameters
    ----------
    trace : Trace
        Its kernels, copies and devices are read.
    identity : Identity, optional
        Of the same trace, where it was found before.
    """
    found = identity or identify(trace)
    return Table.make(
        results.DEVICE_ORDINALS,
        {
            "index": np.array(found.index, dtype=np.int64),
            "process_id": integers(lane[0] for lane in found.lanes),
            "device_id": integers(lane[1] for lane in found.lanes),
        },
    )


def integers(values: Any) -> npt.NDArray[np.int64]:
    """Return Python integers as a column, None as missing."""
    missing = missing_value(np.dtype(np.int64))
    return np.array([missing if v is None else v for v in values], dtype=np.int64)


def texts(values: Any) -> Categorical:
    """Return Python texts as a column, None as missing."""
    return Categorical.of(list(values))


def limits_of(described: dict[str, Any]) -> Limits | None:
    """Return the limits of an SM that occupancy needs, None where one is missing or zero."""
    values = [described.get(field) or 0 for field in _LIMITS]
    if min(values) <= 0 or described.get("threads_per_warp") not in (None, 32):
        return None
    # The allocation rules differ before 3.0.
    if values[0] < 3 or (minor := described.get("compute_minor")) is None:
        return None
    count, blocks, warps, registers, shared = values[1:]
    optin = "max_shared_bytes_per_block_optin" if values[0] >= 7 else "max_shared_bytes_per_block"
    return Limits(
        values[0],
        minor,
        sm_count=count,
        blocks=blocks,
        warps=warps,
        registers=registers,
        shared_bytes=shared,
        block_registers=described.get("max_registers_per_block") or 65536,
        block_shared_bytes=described.get(optin),
    )


@dataclass(frozen=True, slots=True)
class _Which:
    key: tuple[str, str]
    physical_id: str | None
    rank: tuple[int, int, str]


def _number(value: int | None) -> int:
    return -1 if value is None else value


def _rows_for(lane: Lane, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the lane's ordinal: those of its process, else those of any process."""
    here = [row for row in rows if row["device_id"] == lane[1]]
    own = [row for row in here if row["process_id"] is not None and row["process_id"] == lane[0]]
    return own or [row for row in here if row["process_id"] is None]


def _description(lane: Lane, rows: list[dict[str, Any]]) -> dict[str, Any]:
    candidates = _rows_for(lane, rows)
    if not candidates:
        return {}
    return max(candidates, key=lambda row: sum(value is not None for value in row.values()))


def _uuid_of_gpu(rows: list[dict[str, Any]]) -> dict[int, str]:
    """Return the UUID of each GPU id of an identifying row: a row may know one of the two."""
    found: dict[int, str] = {}
    for row in rows:
        if row["identifies"] and row["gpu_id"] is not None and row["uuid"]:
            found.setdefault(row["gpu_id"], row["uuid"])
    return found


def _evidence(lane: Lane, rows: list[dict[str, Any]], uuids: dict[int, str]) -> _Which | None:
    """Return what the identifying rows say; None where they say nothing, or two things."""
    stated = [row for row in _rows_for(lane, rows) if row["identifies"]]
    gpus = {row["gpu_id"] for row in stated if row["gpu_id"] is not None}
    unique = {row["uuid"] or uuids.get(row["gpu_id"]) for row in stated} - {None, ""}
    first = min(gpus, default=1 << 31)
    if len(unique) == 1:
        uuid = str(unique.pop())
        return _Which(("uuid", uuid), uuid, (0, first, uuid))
    if len(gpus) == 1 and not unique:
        return _Which(("gpu", str(first)), str(first), (0, first, ""))
    return None


def _by_ordinal(lane: Lane, lanes: list[Lane]) -> _Which:
    users = {process for process, device in lanes if device == lane[1]}
    if len(users) == 1:
        return _Which(("ordinal", str(lane[1])), str(lane[1]), (1, lane[1], ""))
    # Equal ordinals of two processes may be two GPUs.
    return _Which(("apart", f"{lane[0]}:{lane[1]}"), None, (2, lane[1], ""))


def _peers(copies: Table) -> set[Lane]:
    """Return the lanes that copies name as their source or destination."""
    found: set[Lane] = set()
    for column in ("src_device_id", "dst_device_id"):
        named = group(copies["process_id"], copies[column]).keys
        found |= {(process, device) for process, device in named if device is not None}
    return found
