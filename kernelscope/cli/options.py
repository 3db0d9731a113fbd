"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
Between = tuple[int | None, int | None]

LATEST_NS = 2**63 - 1
"""Times of a trace are 64-bit integers."""

_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "": 1}
_MOMENT = re.compile(r"(?P<whole>\d+)(?:\.(?P<part>\d*))?\s*(?P<unit>[a-zµμ]*)")


def between(_context: click.Context, _option: click.Parameter, text: str | None) -> Between | None:
    """Return the two moments of ``1.5s,2s`` in ns, None for an open end.

    Raises
    ------
    click.BadParameter
        If `text` is nothing of the kind, or no time lies between.
    """
    if text is None:
        return None
    start_text, comma, end_text = (part.strip() for part in text.partition(","))
    if not comma or not (start_text or end_text):
        raise click.BadParameter(
            f"{text!r} is not START,END, such as 1.5s,2s or 1500ms, (open end)"
        )
    try:
        start, end = moment(start_text), moment(end_text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if start is not None and end is not None and start >= end:
        raise click.BadParameter(f"{start_text} does not lie before {end_text}")
    return start, end


def moment(text: str) -> int | None:
    """Return a moment in ns from text such as ``1.5s``, ``20 ms`` or ``1500`` (ns); None if empty.

    Exact: no float comes between, so that every nanosecond of a long trace can be named.

    Raises
    ------
    ValueError
        If it is no such text, names a fraction of a nanosecond, or lies beyond any trace.
    """
    if not text:
        return None
    match = _MOMENT.fullmatch(text)
    if match is None or match["unit"] not in _NS:
        raise ValueError(f"{text!r} is not a time such as 1.5s, 20ms, 300us or 1500 (ns)")
    scale, part = _NS[match["unit"]], match["part"] or ""
    fraction, rest = divmod(int(part or 0) * scale, int(10 ** len(part)))
    if rest:
        raise ValueError(f"{text!r} names a fraction of a nanosecond")
    ns = int(match["whole"]) * scale + fraction
    if ns > LATEST_NS:
        raise ValueError(
            f"{text!r} lies beyond the {LATEST_NS // _NS['s']} s that a trace can hold"
        )
    return ns


def selection(command: Command) -> Command:
    """Add the options that choose a part of a trace."""
    for option in (
        click.option(
            "--between",
            metavar="START,END",
            callback=between,
            help="Look at this part of the trace only: 1.5s,2s (also ms, us, ns), from the "
            "trace's zero; leave out an end to keep it open. Totals are clipped to it.",
        ),
        click.option(
            "--process",
            "processes",
            type=int,
            multiple=True,
            metavar="PID",
            help="Look at this process only; may be repeated.",
        ),
        click.option(
            "--device",
            "devices",
            type=click.IntRange(min=0),
            multiple=True,
            metavar="N",
            help="Look at this GPU only, by the CUDA ordinal of its process; may be repeated.",
        ),
        click.option(
            "--only",
            metavar="ITERATIONS",
            help="Look at these iterations only: steady, a number such as 12, or 10:20.",
        ),
        click.option(
            "--range",
            "within",
            metavar="NAME",
            help="Look at this NVTX range only, from the first start to the last end of that name: "
            "forward, 'step 12/forward', 'step *[3]'.",
        ),
        click.option(
            "--iteration",
            metavar="PATTERN",
            help="The NVTX ranges of this name are the iterations: 'step *'. Found if not given.",
        ),
    ):
        command = option(command)
    return command


def needs_samples(
    context: click.Context, _option: click.Parameter, ranks: int | None
) -> int | None:
    """Return the number of ranks, which says nothing alone.

    Raises
    ------
    click.UsageError
        If no batch size is given; it is read before.
    """
    if ranks is not None and context.params.get("batch_size") is None:
        raise click.UsageError("--ranks is for the throughput, which needs --batch-size, too.")
    return ranks


def samples(command: Command) -> Command:
    """Add the options that a throughput needs."""
    for option in (
        click.option(
            "--batch-size",
            type=click.IntRange(min=1),
            is_eager=True,
            metavar="N",
            help="Samples per iteration and rank, for the throughput.",
        ),
        click.option(
            "--ranks",
            type=click.IntRange(min=1),
            callback=needs_samples,
            metavar="N",
            help="How many ranks train together, for the throughput.",
        ),
    ):
        command = option(command)
    return command


def known_gpus(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    """Return the GPUs of the catalogue whose names begin so."""
    from kernelscope.device import catalogue  # noqa: PLC0415 - for the shell only

    names = [entry.name for entry in catalogue.entries()]
    return [name for name in names if name.casefold().startswith(incomplete.casefold())]


_HZ = {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9, "": 1e6}
_CLOCK = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]*)?(?:e[0-9]+)?)\s*(?P<unit>[kmg]?hz|)", re.IGNORECASE
)
_CLOCKS_HZ = (1e6, 1e11)


def hertz(_context: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    """Return the clock in Hz that ``1410`` (MHz), ``1410 MHz`` or ``1.41GHz`` names.

    Raises
    ------
    click.BadParameter
        If `text` is nothing of the kind, or no GPU's clock.
    """
    if text is None:
        return None
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is no clock such as 1410 (MHz) or 1.41GHz")
    found = float(match["number"]) * _HZ[match["unit"].casefold()]
    if not _CLOCKS_HZ[0] <= found <= _CLOCKS_HZ[1]:
        raise click.BadParameter(f"{text!r} is not between 1 MHz and 100 GHz")
    return round(found)


def gpus(command: Command) -> Command:
    """Add the options that say what a GPU is, and at which clock its peaks are reckoned."""
    for option in (
        click.option(
            "--gpu",
            metavar="NAME",
            shell_complete=known_gpus,
            help="Take the GPUs for this one, for their peaks and limits: 'H100 SXM'. "
            "kernelscope devices lists the names.",
        ),
        click.option(
            "--clock",
            "clock_hz",
            metavar="MHZ",
            callback=hertz,
            help="Reckon peaks at this clock in MHz (or 1.41GHz), tensor cores too, instead of the "
            "trace's maximum or the catalogue's.",
        ),
    ):
        command = option(command)
    return command


def counters(command: Command) -> Command:
    """Add the option that names counters of another run; see :func:`with_counters`."""
    return click.option(
        "--counters",
        multiple=True,
        metavar="PATH",
        type=click.Path(),
        help="Counters of another run of the same program: a report of Nsight Compute, or what ncu "
        "or nvprof printed or stored. Only counts are taken from it, never times. May be repeated.",
    )(command)


def with_counters(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chosen options with the counters that they name read from their files."""
    files = chosen.get("counters")
    if not files:
        return {name: value for name, value in chosen.items() if name != "counters"}
    from kernelscope.parsers.counter_formats import read_counters  # noqa: PLC0415 - few have any

    return {**chosen, "counters": read_counters(*files)}
