"""A pytest plugin that keeps skips honest.

- ``--only-skipped`` runs again what the last run skipped, once more is installed.
- With ``KERNELSCOPE_CI=1`` a run fails if it skips for any reason but a missing GPU, or something
  that cannot be installed on the machine at hand.

A test function is the unit: where one of its parameters was skipped, all of them run again, since
what is installed may change what they are.
"""

from __future__ import annotations

import os

import pytest

ALLOWED_IN_CI = ("no GPU", "cannot be installed here")
"""What a skip's reason must start with under ``KERNELSCOPE_CI=1``."""

_CACHE = "kernelscope/skipped"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--only-skipped", action="store_true", help="run only what the last run skipped"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--only-skipped"):
        return
    cache = _cache(config)
    skipped: list[str] | None = cache.get(_CACHE, None) if cache is not None else None
    if skipped is None:
        raise pytest.UsageError("--only-skipped knows of no earlier run: run pytest without it")
    again = [item for item in items if any(_is_part(item.nodeid, node) for node in skipped)]
    config.hook.pytest_deselected(items=[item for item in items if item not in again])
    items[:] = again


def _is_part(nodeid: str, node: str) -> bool:
    """Whether a test is `node`, one of its parameters, or (a whole file skipped) inside it."""
    return nodeid == node or nodeid.startswith((f"{node}[", f"{node}::"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    cache = _cache(config)
    if cache is not None and not config.getoption("collectonly"):
        cache.set(_CACHE, sorted({nodeid.partition("[")[0] for nodeid, _ in _skips(config)}))
    nothing_left = session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
    if nothing_left and config.getoption("--only-skipped"):
        session.exitstatus = pytest.ExitCode.OK
    if _forbidden(config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    forbidden = _forbidden(config)
    if forbidden:
        terminalreporter.section("skips that KERNELSCOPE_CI=1 forbids", red=True)
        for nodeid, reason in forbidden:
            terminalreporter.line(f"{nodeid}: {reason}")


def _cache(config: pytest.Config) -> pytest.Cache | None:
    """Return pytest's cache; ``-p no:cacheprovider`` takes it away, attribute and all."""
    return getattr(config, "cache", None)


def _forbidden(config: pytest.Config) -> list[tuple[str, str]]:
    if os.environ.get("KERNELSCOPE_CI") != "1":
        return []
    return [skip for skip in _skips(config) if not skip[1].startswith(ALLOWED_IN_CI)]


def _skips(config: pytest.Config) -> list[tuple[str, str]]:
    """Return (node id, reason) of each test, and each file as a whole, that was skipped."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    return [(report.nodeid, _reason(report)) for report in reports]


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
