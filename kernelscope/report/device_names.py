"""What reports call a GPU: its CUDA ordinal where that is unambiguous, else its row."""

from __future__ import annotations

from kernelscope.metrics.analysis import Analysis


def labels(analysis: Analysis) -> list[str]:
    """Return a short label for each row of ``analysis.devices``.

    ``GPU 0`` is CUDA ordinal 0, as ``--device 0`` selects it, where every GPU has one ordinal
    of its own; else ``GPU #0`` is the row's number, and :func:`owners` says whose it is.
    """
    ordinals = [{device for _, device in pairs} for pairs in _pairs(analysis)]
    single = [next(iter(each)) for each in ordinals if len(each) == 1]
    if len(single) == len(ordinals) and len(set(single)) == len(single):
        return [f"GPU {ordinal}" for ordinal in single]
    return [f"GPU #{index}" for index in range(len(ordinals))]


def owners(analysis: Analysis) -> list[str]:
    """Return, per row of ``analysis.devices``, whose device it is; empty if one process has all."""
    pairs = _pairs(analysis)
    if len({process for each in pairs for process, _ in each}) < 2:
        return [""] * len(pairs)
    return [
        ", ".join(
            f"device {device}"
            + (" of an unnamed process" if process is None else f" of process {process}")
            for process, device in each
        )
        for each in pairs
    ]


def _pairs(analysis: Analysis) -> list[list[tuple[int | None, int]]]:
    table = analysis.tables["device_ordinals"]
    result: list[list[tuple[int | None, int]]] = [[] for _ in range(len(analysis.devices))]
    for row, process, device in zip(
        table.values("index"), table.values("process_id"), table.values("device_id"), strict=True
    ):
        result[row].append((process, device))
    return result
