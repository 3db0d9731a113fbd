"""``kernelscope doctor``: what of the profilers and annotations works on this machine."""

from __future__ import annotations

from dataclasses import asdict

import click

from kernelscope.cli.output import emit, in_color, in_unicode, width


@click.command("doctor")
@click.option("--no-self-test", is_flag=True, help="Do not record a small program with nsys.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people or for scripts.",
)
def command(*, no_self_test: bool, format_name: str) -> int:
    """Say what works here: nsys, ncu, nvtx, CUPTI, GPU, driver, permissions.

    A self-test annotates a small program, records it with nsys, reads the export, and counts the
    ranges that arrived. Exits with code 1 if something is installed that does not work; a machine
    that lacks profilers and GPU can still analyze.
    """
    from kernelscope.capture.checks import FAILED, checked  # noqa: PLC0415 - not for --help
    from kernelscope.capture.self_test import self_test  # noqa: PLC0415
    from kernelscope.report import doctor, to_json  # noqa: PLC0415
    from kernelscope.report.layout import Page  # noqa: PLC0415

    found = checked()
    if not no_self_test:
        found.append(self_test())
    if format_name == "json":
        emit(to_json.render({"checks": [asdict(each) for each in found]}), None)
    else:
        page = Page(width())
        emit(doctor.render(found, page, color=in_color(), unicode=in_unicode()), None)
    return int(any(each.status == FAILED for each in found))
