"""GPUs: what a multiprocessor holds, and what a GPU can do at most.

The figures stand in ``devices.toml``, each with its source and confidence. Peaks are computed:
lanes (or tensor FLOP) per clock and multiprocessor, times multiprocessors, times a clock that is
stated. A peak is dense, and of one pipe, one input type and one accumulate type.

>>> from kernelscope.device import find_device
>>> find_device("A100 80GB").peak("fp32").per_s / 1e12
19.49184
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from kernelscope.device import catalogue
from kernelscope.device.catalogue import Entry, Figure
from kernelscope.device.limits import SmLimits, sm_limits
from kernelscope.errors import SelectionError, nearest

CATALOGUE_BOOST = "boost clock of the catalogue"
CATALOGUE_TENSOR = "tensor clock of the catalogue"

FULL, GEFORCE, HALF, NONE, UNKNOWN = "full", "geforce", "half", "none", "unknown"
"""What a product does of its chip's tensor rates: all; half where GeForce boards do; half of all;
it has no tensor cores; or nobody says."""

_MHZ = 1_000_000
_LANES = (("fp32", "FFMA"), ("fp64", "DFMA"), ("fp16", "HFMA2"), ("bf16", "HFMA2.BF16"))
_MMA = {
    "fp16": "HMMA", "bf16": "HMMA", "tf32": "HMMA", "fp64": "DMMA", "int8": "IMMA",
    "int4": "IMMA", "fp8": "QMMA", "fp4": "OMMA",
}  # fmt: skip
_MMA_PREFIX = {9: "G", 10: "UTC", 11: "UTC"}
"""Hopper and the Blackwell of data centres have instructions of their own: HGMMA, UTCHMMA."""


@dataclass(frozen=True, slots=True)
class Peak:
    """What one pipe of a GPU does at most, dense.

    Attributes
    ----------
    key : str
        ``fp32``; of tensor cores ``tensor_fp16_fp32``: input and accumulate type.
    instruction : str
        The machine instruction that does it.
    unit : str
        ``FLOP/s``, or ``OP/s`` of integers; an FMA is two.
    per_s : float
        The peak.
    per_clock : int
        Of one multiprocessor per clock.
    clock_hz : int
        The clock that it is reckoned at.
    clock_basis : str
        Which clock that is.
    confidence : str
        The lowest of what it is made of; see :class:`kernelscope.device.catalogue.Figure`.
    sources : tuple of str
        Where the rate per clock is from.
    published_per_s : float or None
        What is published for the product.
    differs : str
        Why that is another figure, by more than 1 %.
    """

    key: str
    instruction: str
    unit: str
    per_s: float
    per_clock: int
    clock_hz: int
    clock_basis: str
    confidence: str
    sources: tuple[str, ...]
    published_per_s: float | None = None
    differs: str = ""

    @property
    def tensor(self) -> bool:
        """Whether tensor cores do it."""
        return self.key.startswith("tensor_")

    @property
    def input_type(self) -> str:
        """The type that is read."""
        return self.key.split("_")[1] if self.tensor else self.key

    @property
    def accumulate_type(self) -> str:
        """The type that is summed in."""
        return self.key.split("_")[-1]


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU.

    Attributes
    ----------
    name : str
        As CUDA reports it.
    also : tuple of str
        Other names.
    chip : str or None
        ``GA100``, …
    architecture : str
        ``Ampere``, …
    sm_count : int
        Multiprocessors.
    boost_hz, tensor_hz : int
        The clocks at which peaks are reckoned: of lanes and FP64, and of tensor cores.
    boost_basis, tensor_basis : str
        Which clocks these are.
    memory_bytes, memory_bytes_per_s, l2_bytes, l2_bytes_per_s : int or None
        Memory and its rate, of DRAM and of the L2 cache; None where it is not known.
    limits : SmLimits
        Of one multiprocessor.
    peaks : tuple of Peak
        Of every pipe whose rate is known.
    tensor : str
        What it does of its chip's tensor rates: ``full``, ``geforce``, ``half``, ``none``, or
        ``unknown``, and then no peak of tensor cores is given.
    basis : str
        ``catalogue``, or what it was computed from.
    note : str
        What to know of it.
    figures : mapping of str to Figure
        Every figure of the catalogue, with source and confidence.
    """

    name: str
    also: tuple[str, ...]
    chip: str | None
    architecture: str
    sm_count: int
    boost_hz: int
    boost_basis: str
    tensor_hz: int
    tensor_basis: str
    memory_bytes: int | None
    memory_bytes_per_s: int | None
    l2_bytes: int | None
    l2_bytes_per_s: int | None
    limits: SmLimits
    peaks: tuple[Peak, ...]
    tensor: str
    basis: str
    note: str = ""
    figures: Mapping[str, Figure] = field(default_factory=dict, repr=False, compare=False)

    @property
    def capability(self) -> str:
        """Compute capability as text: ``8.6``."""
        return f"{self.limits.compute_major}.{self.limits.compute_minor}"

    def peak(self, key: str) -> Peak:
        """Return one peak.

        Raises
        ------
        SelectionError
            If the GPU has none of that key, or it is not known.
        """
        for peak in self.peaks:
            if peak.key == key:
                return peak
        raise SelectionError(
            f"No peak {key!r} of {self.name} is known.", nearest(key, [p.key for p in self.peaks])
        )


def devices() -> tuple[Device, ...]:
    """Return every GPU of the catalogue, in its order: nearly by age."""
    return tuple(of_entry(entry) for entry in catalogue.entries())


def find_device(name: str, *, clock_hz: int | None = None) -> Device:
    """Return the GPU of a name.

    Parameters
    ----------
    name : str
        As CUDA reports it, or shorter: ``NVIDIA A100-SXM4-80GB``, ``A100 80GB``, ``a100``.
    clock_hz : int, optional
        The clock at which peaks are reckoned, of lanes and of tensor cores.

    Raises
    ------
    SelectionError
        If there is none, or the name is a part of several; the hint names them, or the nearest.
    """
    entry = next(iter(catalogue.named(name)), None)
    if entry is None:
        raise _unknown(name)
    device = of_entry(entry)
    return device if clock_hz is None else at(device, clock_hz, "chosen clock")


def _unknown(name: str) -> SelectionError:
    several = catalogue.like(name)
    if several:
        more = ", …" if len(several) > _MOST_LIKE else ""
        return SelectionError(
            f"There is no GPU {name!r} in the catalogue.",
            f"There are: {', '.join(several[:_MOST_LIKE])}{more}. kernelscope devices lists all.",
        )
    names = [each for one in catalogue.entries() for each in one.names]
    return SelectionError(
        f"There is no GPU {name!r} in the catalogue.",
        f"{nearest(name, names)} kernelscope devices lists all.",
    )


def computed(  # noqa: PLR0913 - what a GPU's peaks are made of
    name: str,
    limits: SmLimits,
    sm_count: int,
    clock_hz: int,
    *,
    clock_basis: str,
    tensor: str = UNKNOWN,
) -> Device:
    """Return a GPU that the catalogue does not hold, from its capability, SMs and clock.

    Parameters
    ----------
    name : str
        What to call it.
    limits : SmLimits
        Of its compute capability.
    sm_count : int
        Its multiprocessors.
    clock_hz : int
        The clock at which peaks are reckoned.
    clock_basis : str
        Which clock that is.
    tensor : str
        As in :class:`Device`.
    """
    capability = f"{limits.compute_major}.{limits.compute_minor}"
    raw = _raw(capability)
    device = Device(
        name, (), None, raw["architecture"], sm_count,
        clock_hz, clock_basis, clock_hz, clock_basis,
        None, None, None, None,
        limits, (), tensor,
        basis=f"computed from compute capability {capability}, {sm_count} SMs and the "
        f"{clock_basis}",
    )  # fmt: skip
    return replace(device, peaks=_peaks(device))


def _raw(capability: str) -> Mapping[str, Any]:
    found = catalogue.capability(capability)
    if found is None:
        raise ValueError(f"devices.toml: nothing is said of compute capability {capability}")
    return found


def varies(capability: str) -> bool:
    """Tell whether GeForce boards of a compute capability do less than others with tensor cores."""
    return "tensor_geforce" in _raw(capability)


def at(device: Device, clock_hz: int, basis: str, *, tensor_hz: int | None = None) -> Device:
    """Return a GPU with its peaks reckoned at another clock.

    Parameters
    ----------
    device : Device
        The GPU.
    clock_hz : int
        The clock.
    basis : str
        Which clock that is.
    tensor_hz : int, optional
        That of tensor cores, where it stays another: then its basis stays, too.
    """
    tensor_basis = basis if tensor_hz is None else device.tensor_basis
    per_clock = device.figures.get("l2_bytes_per_clock")
    found = replace(
        device,
        boost_hz=clock_hz,
        boost_basis=basis,
        tensor_hz=clock_hz if tensor_hz is None else tensor_hz,
        tensor_basis=tensor_basis,
        l2_bytes_per_s=None if per_clock is None else per_clock.value * clock_hz,
    )
    return replace(found, peaks=_peaks(found))


def with_sms(device: Device, sm_count: int) -> Device:
    """Return a GPU of which only some multiprocessors are there, with its peaks."""
    found = replace(device, sm_count=sm_count)
    return replace(found, peaks=_peaks(found))


@cache
def of_entry(entry: Entry) -> Device:
    """Return a GPU of the catalogue."""
    raw = catalogue.parsed(entry)
    found = catalogue.figures(raw)
    major, minor = map(int, raw["capability"].split("."))
    limits = sm_limits(major, minor)
    if limits is None:
        raise ValueError(f"devices.toml: {entry.name} has an unknown compute capability")
    boost = round(found["boost_mhz"].value * _MHZ)
    own_clock = "tensor_mhz" in found
    l2 = found.get("l2_mib")
    per_clock = found.get("l2_bytes_per_clock")
    device = Device(
        entry.name, entry.also, raw["chip"],
        _raw(raw["capability"])["architecture"],
        found["sm_count"].value,
        boost, CATALOGUE_BOOST,
        round(found["tensor_mhz"].value * _MHZ) if own_clock else boost,
        CATALOGUE_TENSOR if own_clock else CATALOGUE_BOOST,
        round(found["memory_gb"].value * 1e9), round(found["memory_gb_per_s"].value * 1e9),
        None if l2 is None else round(l2.value * 2**20),
        None if per_clock is None else per_clock.value * boost,
        limits, (), raw.get("tensor", FULL), "catalogue", raw.get("note", ""), found,
    )  # fmt: skip
    return replace(device, peaks=_with_published(_peaks(device), raw))


def _with_published(
    peaks: tuple[Peak, ...], raw: Mapping[str, Mapping[str, object]]
) -> tuple[Peak, ...]:
    published = catalogue.figures(raw.get("published", {}))
    reasons = raw.get("differs", {})
    return tuple(
        replace(
            peak,
            published_per_s=published[peak.key].value * 1e12,
            differs=str(reasons.get(peak.key, "")),
        )
        if peak.key in published
        else peak
        for peak in peaks
    )


def _peaks(device: Device) -> tuple[Peak, ...]:
    raw = _raw(device.capability)
    rates = catalogue.figures(raw) | {
        key: figure for key, figure in device.figures.items() if key.endswith("_lanes")
    }
    doubts = _confidences(device, {"sm_count": True, "boost_mhz": device.boost_basis})
    clock = (device.boost_hz, device.boost_basis)
    found = [
        _peak(device, (name, instruction), 2, rates[f"{name}_lanes"], clock, doubts)
        for name, instruction in _LANES
        if f"{name}_lanes" in rates
    ]
    for key, rate in _tensor_rates(raw, device.tensor).items():
        kind = key.partition("_")[0]
        # FP64 peaks of tensor cores are published at the boost clock, as those of lanes are.
        clock = (
            (device.boost_hz, device.boost_basis)
            if kind == "fp64"
            else (device.tensor_hz, device.tensor_basis)
        )
        doubts = _confidences(
            device, {"sm_count": True, "boost_mhz": clock[1], "tensor_mhz": clock[1]}
        )
        if device.basis != "catalogue":
            doubts.append("C")  # a product may do less than its chip
        instruction = _mma(kind, device.limits.compute_major)
        found.append(_peak(device, (f"tensor_{key}", instruction), 1, rate, clock, doubts))
    return tuple(found)


_MOST_LIKE = 5
_CLOCKS = {"boost_mhz": CATALOGUE_BOOST, "tensor_mhz": CATALOGUE_TENSOR}


def _confidences(device: Device, used: Mapping[str, object]) -> list[str]:
    """Return the confidence of what a peak is made of; what the trace says is beyond doubt."""
    return [
        device.figures[key].confidence
        for key, basis in used.items()
        if key in device.figures and _CLOCKS.get(key, basis) == basis
    ]


def _mma(kind: str, major: int) -> str:
    name, prefix = _MMA[kind], _MMA_PREFIX.get(major, "")
    if kind == "fp64" or not prefix:
        return name
    return f"{name[0]}G{name[1:]}" if prefix == "G" else f"{prefix}{name}"


def _tensor_rates(raw: Mapping[str, Mapping[str, object]], tensor: str) -> dict[str, Figure]:
    """Return FLOP per clock and multiprocessor by input and accumulate type."""
    if tensor in (NONE, UNKNOWN):
        return {}
    rates = catalogue.figures(raw.get("tensor", {}))
    if tensor == GEFORCE:
        rates |= catalogue.figures(raw.get("tensor_geforce", {}))
    if tensor == HALF:
        rates = {key: replace(rate, value=rate.value // 2) for key, rate in rates.items()}
    return rates


def _peak(  # noqa: PLR0913, PLR0917 - a peak is made of that much
    device: Device,
    which: tuple[str, str],
    factor: int,
    rate: Figure,
    clock: tuple[int, str],
    doubts: list[str],
) -> Peak:
    per_clock = rate.value * factor
    hz, basis = clock
    return Peak(
        key=which[0],
        instruction=which[1],
        unit="OP/s" if "_int" in which[0] else "FLOP/s",
        per_s=float(per_clock) * device.sm_count * hz,
        per_clock=per_clock,
        clock_hz=hz,
        clock_basis=basis,
        confidence=max(rate.confidence, *doubts, "A"),
        sources=rate.sources,
    )
