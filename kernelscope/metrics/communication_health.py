"""What is not known of a trace's communication, and what would tell it."""

from __future__ import annotations

import numpy as np

from kernelscope.metrics.communication import CommunicationTime, counted
from kernelscope.metrics.communication_calls import REASONS
from kernelscope.metrics.communication_names import KINDS, UNKNOWN
from kernelscope.metrics.health import Finding

_WHY: dict[str, str] = {
    "no_nvtx_range": "no NVTX range of NCCL or PyTorch holds their launches. Trace NVTX "
    "(nsys profile --trace=cuda,nvtx); launches from CUDA graphs and before the capture have none",
    "no_size_in_nvtx": "their NVTX ranges carry none here. NCCL 2.15 and later record it: nsys "
    "export --type=sqlite --include-blobs=true REPORT writes it to the file",
    "mixed_group": "they ran in groups of several kernels, or of other operations",
    "kind_unknown": "neither their names nor NVTX tell what they do",
    "ranks_unknown": "they count one rank's share, and the making of the communicator was not "
    "recorded. Give the number of ranks",
}


def communication_findings(found: CommunicationTime) -> list[Finding]:
    """What is not known of the communication, and what would tell it?

    Parameters
    ----------
    found : CommunicationTime
        What :func:`kernelscope.metrics.communication.measure_communication` found.

    Returns
    -------
    list of Finding
        At most one on kinds and one per reason on sizes, of severity ``info``.
    """
    calls, inside = found.calls, counted(found)
    findings = []
    unknown = int((calls.kind[inside] == KINDS.index(UNKNOWN)).sum())
    if unknown:
        findings.append(
            Finding(
                "communication_kind_unknown",
                "info",
                unknown,
                "Communication kernels whose names do not say what they do, outside any range of "
                "NCCL that does: their kind is unknown.",
            )
        )
    reasons = np.bincount(calls.reason[inside], minlength=len(REASONS)).tolist()
    findings += [
        Finding(
            "communication_size_unknown",
            "info",
            count,
            f"Communication calls without bytes and rates: {_WHY[reason]}.",
        )
        for reason, count in zip(REASONS, reasons, strict=True)
        if reason and count
    ]
    return findings
