"""Which GPU of the catalogue a trace's GPU is, told by its name and by what the trace says of it.

A name alone does not do: one name stands for two boards (an RTX 3080 of 68 and of 70 SMs), a MIG
instance has the name of the whole GPU, and a driver that does not know a board calls it ``Graphics
Device``. What is in no catalogue is computed from its compute capability, SMs and clock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kernelscope.device import catalogue, gpus
from kernelscope.device.gpus import Device
from kernelscope.device.limits import SmLimits, sm_limits

TRACE_CLOCK = "maximum clock in the trace"
CHOSEN_CLOCK = "--clock"
ASK = "--gpu NAME says which GPU it is (kernelscope devices lists them)"

_MIG = " MIG "
"""Between the name of a whole GPU and that of an instance of it: ``MIG 1g.5gb``."""
_CLOSE = 0.03
"""Clocks and bandwidths this near are one product's: traces round, and so do data sheets."""

_GTX_16 = r"\bgtx 16\d\d\b|\bmx ?\d{3}\b|\bt(400|500|550|600|1000|1200)\b"
_PROFESSIONAL = r"quadro|tesla|titan|\brtx a\d|\brtx pro\b|\bada generation\b"
_SOLD_LIMITED = ("9.0", "10.0", "10.3")
"""Of these chips there are boards whose tensor cores are limited, and names that nobody knows."""


@dataclass(frozen=True, slots=True)
class Match:
    """What a trace's GPU was taken for.

    Attributes
    ----------
    device : Device or None
        The GPU with the trace's own figures where it has some; None where nobody knows.
    matched_by : str
        ``name``, ``specs``, ``computed``, ``--gpu``, or ``nothing``.
    why : str
        What decided it; or what is missing.
    doubts : tuple of str
        What differs from the catalogue, or is not known.
    """

    device: Device | None
    matched_by: str
    why: str
    doubts: tuple[str, ...] = ()


def match(
    described: Mapping[str, Any], *, gpu: str | None = None, clock_hz: int | None = None
) -> Match:
    """Find what a GPU is.

    Parameters
    ----------
    described : mapping
        A row of the table ``devices``: columns it lacks, and None, are not known.
    gpu : str, optional
        What the user says it is.
    clock_hz : int, optional
        The clock at which the user wants peaks reckoned.

    Raises
    ------
    SelectionError
        If `gpu` is in no catalogue.
    """
    clock = clock_hz or described.get("clock_hz")
    found = _chosen(described, gpu) if gpu is not None else _found(described, clock)
    if found.device is None:
        return found
    device, doubts = _with_its_own(found.device, described, clock_hz)
    return replace(found, device=device, doubts=(*found.doubts, *doubts))


def limits(described: Mapping[str, Any]) -> SmLimits | None:
    """Return what a multiprocessor holds, by compute capability, or by name where none is known."""
    major, minor = described.get("compute_major"), described.get("compute_minor")
    if major is not None and minor is not None:
        return sm_limits(major, minor)
    named = _candidates(described)[:1]
    return named[0].limits if named else None


def _chosen(described: Mapping[str, Any], gpu: str) -> Match:
    device = gpus.find_device(gpu)
    doubts = []
    said = described.get("name")
    if said and catalogue.plain(said) not in map(catalogue.plain, (device.name, *device.also)):
        doubts.append(f"the trace says {said}")
    theirs = _capability(described)
    if theirs is not None and theirs != device.capability:
        doubts.append(f"the trace says compute capability {theirs}, not {device.capability}")
    return Match(device, "--gpu", f"--gpu names it: {gpu}", tuple(doubts))


def _found(described: Mapping[str, Any], clock: int | None) -> Match:
    name = described.get("name")
    by_name = _candidates(described)
    if by_name:
        device = min(by_name, key=lambda each: _distance(each, described))
        if _fits_in(device, described):
            return Match(device, "name", f"by its name, {name}")
    by_specs = _alike(described)
    if by_specs:
        device = min(by_specs, key=lambda each: _distance(each, described))
        return Match(
            device, "specs", f"{name or 'a GPU without a name'}: by its SMs, clock and bandwidth"
        )
    return _computed(described, clock)


def _candidates(described: Mapping[str, Any]) -> list[Device]:
    """Return the GPUs that go by the trace's name, and have its capability."""
    name = (described.get("name") or "").partition(_MIG)[0]
    theirs = _capability(described)
    found = [gpus.of_entry(entry) for entry in catalogue.named(name)]
    return [each for each in found if theirs in (None, each.capability)]


def _capability(described: Mapping[str, Any]) -> str | None:
    major, minor = described.get("compute_major"), described.get("compute_minor")
    return None if major is None or minor is None else f"{major}.{minor}"


def _fits_in(device: Device, described: Mapping[str, Any]) -> bool:
    """Tell whether the trace's GPU can be a part of `device`: fewer SMs are a MIG instance."""
    count = described.get("sm_count")
    return count is None or count <= device.sm_count


def _differences(device: Device, described: Mapping[str, Any]) -> list[float]:
    """Return by how much of itself each of the trace's figures differs."""
    pairs = (
        ("sm_count", device.sm_count),
        ("memory_bytes_per_s", device.memory_bytes_per_s),
        ("clock_hz", device.boost_hz),
    )
    return [abs(described[key] / ours - 1) for key, ours in pairs if described.get(key) and ours]


def _distance(device: Device, described: Mapping[str, Any]) -> float:
    far = sum(_differences(device, described))
    memory = described.get("memory_bytes")
    if memory and device.memory_bytes:  # a part of it is set aside; it only tells siblings apart
        far += abs(memory / device.memory_bytes - 1) / 10
    return far


def _alike(described: Mapping[str, Any]) -> list[Device]:
    """Return the GPUs that have every figure of the trace's GPU, if all have one kind of tensor."""
    capability = _capability(described)
    known = [described.get(key) for key in ("sm_count", "clock_hz", "memory_bytes_per_s")]
    if capability is None or None in known:
        return []
    line = _product_line(described)
    found = [
        device
        for device in gpus.devices()
        if device.capability == capability
        and device.sm_count == described["sm_count"]
        and max(_differences(device, described)) <= _CLOSE
        and described.get("chip") in (None, device.chip)
        and line in (gpus.UNKNOWN, device.tensor)
    ]
    return found if len({device.tensor for device in found}) == 1 else []


def _product_line(described: Mapping[str, Any]) -> str:
    """Return what boards of such a name do of their chip's tensor rates."""
    name = (described.get("name") or "").casefold()
    if re.search(_GTX_16, name):
        return gpus.NONE
    if "geforce" in name:
        return gpus.GEFORCE
    if _capability(described) in _SOLD_LIMITED or not re.search(_PROFESSIONAL, name):
        return gpus.UNKNOWN
    return gpus.FULL


def _computed(described: Mapping[str, Any], clock: int | None) -> Match:
    name = described.get("name") or "a GPU without a name"
    found = limits(described)
    count = described.get("sm_count")
    missing = [
        what
        for what, value in (
            ("compute capability", found), ("number of SMs", count), ("clock", clock),
        )
        if not value
    ]  # fmt: skip
    if found is None or not count or not clock:
        capability = _capability(described)
        lacking = (
            f"compute capability {capability} is not, either"
            if found is None and capability is not None
            else f"the trace does not say its {', '.join(missing)}"
        )
        return Match(None, "nothing", f"{name} is not in the catalogue, and {lacking}: {ASK}")
    capability = f"{found.compute_major}.{found.compute_minor}"
    line = _product_line(described)
    if line == gpus.UNKNOWN and not gpus.varies(capability) and capability not in _SOLD_LIMITED:
        line = gpus.FULL
    device = gpus.computed(name, found, count, clock, clock_basis=TRACE_CLOCK, tensor=line)
    untold = ("what its tensor cores do depends on the product, and is left out",)
    return Match(
        device,
        "computed",
        f"{name} is not in the catalogue: {device.basis}",
        untold if device.tensor == gpus.UNKNOWN else (),
    )


def _with_its_own(
    device: Device, described: Mapping[str, Any], clock_hz: int | None
) -> tuple[Device, list[str]]:
    """Put what the trace says of its GPU in the place of the catalogue's figures."""
    doubts = []
    count, clock = described.get("sm_count"), described.get("clock_hz")
    whole = device.sm_count
    if count and count != whole:
        device = gpus.with_sms(device, count)
        doubts.append(
            f"{count} of {whole} SMs: a MIG instance, or a part of the GPU"
            if count < whole
            else f"{count} SMs, not {whole}"
        )
    if clock_hz is not None:
        device = gpus.at(device, clock_hz, CHOSEN_CLOCK)
    elif clock:
        own = device.tensor_basis == gpus.CATALOGUE_TENSOR
        slower = own and device.tensor_hz <= clock
        device = gpus.at(device, clock, TRACE_CLOCK, tensor_hz=device.tensor_hz if slower else None)
    bandwidth = described.get("memory_bytes_per_s")
    part = bool(count and count < whole) or _MIG in (described.get("name") or "")
    if part:
        doubts.append("the share of the memory's bandwidth is not recorded")
    ours = device.memory_bytes_per_s
    if bandwidth and ours and abs(bandwidth / ours - 1) > _CLOSE:
        doubts.append(
            f"the trace says {bandwidth / 1e9:,.0f} GB/s, the catalogue {ours / 1e9:,.0f}"
        )
    return replace(
        device,
        memory_bytes=described.get("memory_bytes") or device.memory_bytes,
        memory_bytes_per_s=None if part else bandwidth or ours,
        l2_bytes=described.get("l2_bytes") or device.l2_bytes,
        l2_bytes_per_s=None if part else device.l2_bytes_per_s,
    ), doubts
