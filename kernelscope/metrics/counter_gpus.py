"""Counters of another GPU than the trace's: what of them still holds, and what does not.

For another compute capability kernels are compiled, and chosen, anew: none of its counters is used.
Another product of the same capability runs the same instructions over other caches: bytes of L2
and DRAM are not used, FLOPs and instructions are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from kernelscope.metrics.counted_recipes import RECIPES
from kernelscope.metrics.counted_work import CACHED
from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.health import Finding
from kernelscope.parsers.counter_set import CounterSet
from kernelscope.trace import Table, Trace

Capability = tuple[int, int]
Gpu = tuple[str | None, Capability | None]
"""Product name and compute capability, each None where it is not told."""

_BRAND = re.compile(r"\b(?:nvidia|tesla|quadro|geforce)\b|\s+", re.IGNORECASE)


def capability_of(trace: Trace) -> Capability | None:
    """Return the compute capability of the trace's GPUs, where they have one in common."""
    known = {each for _, each in _gpus(trace.devices) if each is not None}
    return known.pop() if len(known) == 1 else None


def of_these_gpus(trace: Trace, counted: CounterSet) -> tuple[CounterSet, list[Finding]]:
    """Return what of the counters holds for the trace's GPUs, and what was left out.

    Parameters
    ----------
    trace : Trace
        Its devices are read. What is not told of a GPU is taken as no difference.
    counted : CounterSet
        Of one run or several; each is judged by the GPUs that it counted on.
    """
    here = _gpus(trace.devices)
    foreign: dict[int, str] = {}
    unlike: dict[int, str] = {}
    for run, gpus in _by_run(counted.executions):
        for gpu in gpus:
            difference = _difference(gpu, here)
            if difference is not None:
                (foreign if difference else unlike)[run] = _named(gpu)
    findings = []
    if foreign:
        findings.append(_foreign(set(foreign.values()), here))
        counted = _without_runs(counted, list(foreign))
    unlike = {run: name for run, name in unlike.items() if run not in foreign}
    if unlike:
        findings.append(_unlike(set(unlike.values()), here))
        counted = _without_caches(counted, list(unlike))
    return counted, findings


def _gpus(table: Table) -> list[Gpu]:
    columns = (table.texts("name"), table.values("compute_major"), table.values("compute_minor"))
    return list(dict.fromkeys(_gpu(*row) for row in zip(*columns, strict=True)))


def _gpu(name: str | None, major: int | None, minor: int | None) -> Gpu:
    return name, None if major is None else (major, minor or 0)


def _by_run(executions: Table) -> Iterator[tuple[int, list[Gpu]]]:
    if not len(executions):
        return
    names = ("run", "device_name", "compute_major", "compute_minor")
    products = (*executions.categories("device_name"), None)
    found: dict[int, list[Gpu]] = {}
    columns = (key.tolist() for key in grouped([executions[name] for name in names])[1])
    for run, product, major, minor in zip(*columns, strict=True):
        of = None if major < 0 else (major, max(minor, 0))
        found.setdefault(run, []).append((products[product], of))
    yield from sorted(found.items())


def _difference(gpu: Gpu, here: Iterable[Gpu]) -> bool | None:
    """Return True for another capability, False for another product only, None for no difference.

    Where neither is told of both sides alike, a name that differs may be any GPU.
    """
    name, capability = gpu
    capabilities = {each for _, each in here if each is not None}
    names = {_plain(each) for each, _ in here if each is not None}
    if capability is not None and capabilities:
        if capability not in capabilities:
            return True
        names = {_plain(n) for n, c in here if n is not None and c in (capability, None)}
    differs = name is not None and bool(names) and _plain(name) not in names
    if not differs:
        return None
    return capability is None or not capabilities


def _plain(name: str) -> str:
    return _BRAND.sub("", name).casefold()


def _named(gpu: Gpu) -> str:
    name, capability = gpu
    of = "" if capability is None else f"compute capability {capability[0]}.{capability[1]}"
    return ", ".join(filter(None, (name, of)))


def _without_runs(counted: CounterSet, runs: list[int]) -> CounterSet:
    counters = counted.counters.take(~np.isin(counted.counters["run"], runs))
    executions = counted.executions.take(~np.isin(counted.executions["run"], runs))
    return replace(counted, counters=counters, executions=executions)


def _without_caches(counted: CounterSet, runs: list[int]) -> CounterSet:
    """Return the counters without those that depend on the size of caches, of some runs."""
    recipes = [recipe for recipe in RECIPES if recipe.quantity in CACHED]
    names = {counter for recipe in recipes for _, counter in recipe.terms}
    prefixes = tuple(names)
    table = counted.counters
    of_cache = [name.startswith(prefixes) for name in table.categories("metric")]
    left_out = np.array([*of_cache, False])[table["metric"]] & np.isin(table["run"], runs)
    return replace(counted, counters=table.take(~left_out))


def _foreign(names: set[str], here: Iterable[Gpu]) -> Finding:
    return Finding(
        "counters_of_another_gpu",
        "warning",
        len(names),
        f"Counters of {'; '.join(sorted(names))} were left out: the trace is of "
        f"{_all_of(here)}. For another GPU kernels are compiled, and chosen, anew.",
    )


def _unlike(names: set[str], here: Iterable[Gpu]) -> Finding:
    return Finding(
        "counters_of_another_model",
        "warning",
        len(names),
        f"Counters are of {'; '.join(sorted(names))}, the trace of {_all_of(here)}: the same "
        "instructions over other caches. Bytes of L2 and DRAM were left out.",
    )


def _all_of(gpus: Iterable[Gpu]) -> str:
    return "; ".join(sorted(filter(None, map(_named, gpus)))) or "another"
