"""What sampled GPU metrics are: their unit, and what they tell, by the profiler's names.

A name is words and, from Nsight Systems 2023.4 on, a unit in brackets: ``SMs Active [Throughput
%]``. The words changed with the generations of GPUs and of the profiler; case does not count.

Sources: "GPU Metrics, Available Metrics" of the Nsight Systems User Guide (each is a percentage
of cycles, or a clock in hertz); names of TU10x, GA100, GA10x, GH100 and GB20x sets as public
exports and scripts spell them. Clocks are recorded in Hz, though the name says MHz: 1,535,289,111
of an H100. ``[Avg]`` and ``[Avg Warps per Cycle]`` are stored under a scale that is not documented
(values of millions, and negative ones, were seen), so that they have no unit here.
"""

from __future__ import annotations

from dataclasses import dataclass

PERCENT = 0.01
"""Shares are recorded as whole percentages from 0 to 100."""

NANOSECONDS = 1e9
"""Counts of a sample become a rate per second of the time that it covers."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a sampled metric is.

    Attributes
    ----------
    role : str or None
        What it tells: ``sm_issue``, ``dram_read``, …; None for those that no figure uses.
    unit : {"ratio", "Hz", "1/s", "bytes/s"} or None
        Of its mean; None where the scale of what was recorded is not known.
    counted : bool
        Whether a sample's value is a count over its time, not a level: the mean is a rate.
    scale : float
        What turns the weighted mean (of counts: count per ns) into the unit.
    """

    role: str | None
    unit: str | None
    counted: bool = False
    scale: float = 1.0


_BRACKETS = {
    "throughput %": ("ratio", False, PERCENT),
    "%": ("ratio", False, PERCENT),
    "mhz": ("Hz", False, 1.0),
    "hz": ("Hz", False, 1.0),
    "requests": ("1/s", True, NANOSECONDS),
    "bytes": ("bytes/s", True, NANOSECONDS),
}
"""The unit in brackets → unit of the mean, whether samples are counts, and the scale."""

_NVLINK = {
    f"nvlink {way} {what} {part} data": f"nvlink_{way}"
    for way in ("rx", "tx")
    for what in ("requests", "responses")
    for part in ("user", "protocol")
}

ROLES: dict[str, str] = {
    "gr active": "gpu_active",
    "gpu active": "gpu_active",
    "sm active": "sm_active",
    "sms active": "sm_active",
    "sm issue": "sm_issue",
    "tensor active": "tensor_active",
    "tensor active / fp16 active": "tensor_or_fp16_active",
    "fp16 active": "fp16_active",
    "fp32 active": "fp32_active",
    "fp64 active": "fp64_active",
    "compute warps in flight": "compute_warps",
    "unallocated warps in active sms": "unallocated_warps",
    "dram read bandwidth": "dram_read",
    "dram read throughput": "dram_read",
    "dram write bandwidth": "dram_write",
    "dram write throughput": "dram_write",
    "dram bandwidth": "dram",
    "dram throughput": "dram",
    **_NVLINK,
    "pcie rx throughput": "pcie_rx",
    "pcie tx throughput": "pcie_tx",
    "gpc clock frequency": "gpc_clock",
    "sys clock frequency": "sys_clock",
}
"""Words of a name, in small letters → what the metric tells.

``sm_active`` is residency: a warp was there, whether it did anything or waited. What computes is
told by ``sm_issue``, ``tensor_active`` and the pipes. Turing's tensor counter counts FP16 too.
"""

ORDER: tuple[str, ...] = tuple(dict.fromkeys(ROLES.values()))
"""The roles, in the order of a report."""

CLOCKS = frozenset({"gpc_clock", "sys_clock"})
MEMORY = frozenset({"dram_read", "dram_write", "dram"})
"""Shares of the peak of the device memory, the one peak that a trace holds."""

_NO_BARE_UNIT = frozenset({"compute_warps", "unallocated_warps"})
"""Of these, a name without a unit may be the share or the average."""


def meaning(name: str) -> Meaning:
    """Return what the metric called `name` is.

    Parameters
    ----------
    name : str
        As the profiler spells it.
    """
    words, _, bracket = name.partition("[")
    role = ROLES.get(words.strip().lower())
    if bracket:
        known = _BRACKETS.get(bracket.rstrip(" ]").lower())
        if known is None:
            return Meaning(None, None)
        return Meaning(role, *known)
    if role is None or role in _NO_BARE_UNIT:
        return Meaning(None, None)
    return Meaning(role, "Hz") if role in CLOCKS else Meaning(role, "ratio", False, PERCENT)
