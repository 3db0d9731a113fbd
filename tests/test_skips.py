"""The gate must be seen to close: each test runs pytest on a small suite of its own."""

from __future__ import annotations

import pytest

SUITE = """
    import os
    import pytest

    def test_runs():
        pass

    @pytest.mark.parametrize("number", [1, 2])
    def test_skips(number):
        if number == 2 and "REASON" in os.environ:
            pytest.skip(os.environ["REASON"])
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    for name in ("KERNELSCOPE_CI", "REASON"):
        monkeypatch.delenv(name, raising=False)
    pytester.makepyfile(test_suite=SUITE)
    return pytester


def _run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return suite.runpytest_inprocess("-p", "tests.skips", *arguments)


def test_a_skip_is_fine_outside_ci(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASON", "no gcc")

    assert _run(suite).ret == pytest.ExitCode.OK


@pytest.mark.parametrize("reason", ["no GPU: no driver", "cannot be installed here: no wheel"])
def test_ci_allows_what_no_install_can_mend(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    monkeypatch.setenv("KERNELSCOPE_CI", "1")
    monkeypatch.setenv("REASON", reason)

    assert _run(suite).ret == pytest.ExitCode.OK


@pytest.mark.parametrize("reason", ["no gcc", "there is no GPU"])
def test_ci_fails_on_any_other_skip_and_names_it(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    monkeypatch.setenv("KERNELSCOPE_CI", "1")
    monkeypatch.setenv("REASON", reason)

    result = _run(suite)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"test_suite.py::test_skips?2?: {reason}"])


def test_ci_fails_where_a_whole_file_is_skipped(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELSCOPE_CI", "1")
    suite.makepyfile(test_other='import pytest; pytest.importorskip("no_such_module")')

    result = _run(suite)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["test_other.py: could not import*"])


def test_only_skipped_runs_every_parameter_of_what_was_skipped_and_nothing_else(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REASON", "no gcc")
    _run(suite).assert_outcomes(passed=2, skipped=1)
    monkeypatch.delenv("REASON")

    _run(suite, "--only-skipped").assert_outcomes(passed=2, deselected=1)


def test_only_skipped_runs_a_file_that_was_skipped_as_a_whole(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_other="""
        import pytest
        pytest.importorskip("made_later")
        def test_inside():
            pass
        """
    )
    _run(suite).assert_outcomes(passed=3, skipped=1)
    suite.makepyfile(made_later="")

    _run(suite, "--only-skipped").assert_outcomes(passed=1, deselected=3)


def test_only_skipped_is_content_where_nothing_was(suite: pytest.Pytester) -> None:
    _run(suite)

    result = _run(suite, "--only-skipped")

    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(deselected=3)


def test_only_skipped_needs_an_earlier_run(suite: pytest.Pytester) -> None:
    result = _run(suite, "--only-skipped")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*run pytest without it*"])


def test_the_audit_does_without_a_cache(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELSCOPE_CI", "1")
    monkeypatch.setenv("REASON", "no gcc")

    assert _run(suite, "-p", "no:cacheprovider").ret == pytest.ExitCode.TESTS_FAILED
