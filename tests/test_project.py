"""The project's own promises: what README, changelog and layout say is so."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import kernelscope
from kernelscope._version import __version__

ROOT = Path(__file__).resolve().parent.parent

INSTALL = "python3 -m venv .venv && .venv/bin/pip install -q -e "


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _readme_command(number: int) -> str:
    block = rf"^<!-- ci: command {number} -->\n```sh\n(.+?)\n```$"
    found = re.findall(block, _text("README.md"), re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    command: str = found[0]
    return command


def _modules() -> list[str]:
    return sorted(
        module.name for module in pkgutil.iter_modules(kernelscope.__path__, "kernelscope.")
    )


def test_command_1_analyses_a_sample_that_exists() -> None:
    installs, analyses = _readme_command(1).split(". && ")
    command, sample = analyses.rsplit(" ", 1)

    assert installs == INSTALL
    assert command == ".venv/bin/kernelscope analyze"
    assert Path(sample).parent == Path("traces")
    assert (ROOT / sample).is_file()


def test_command_2_runs_the_tests() -> None:
    assert _readme_command(2) == INSTALL + "'.[test]' && .venv/bin/pytest"


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(name: str) -> None:
    links = re.findall(r"\]\(([^)#]+)", _text(name))

    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_the_licence_is_apache() -> None:
    text = _text("LICENSE")

    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_changelog_leads_up_to_the_version() -> None:
    headings = re.findall(r"^## (.+)$", _text("CHANGELOG.md"), re.MULTILINE)
    released = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}", h) for h in headings[1:]]
    versions = [match[1] for match in released if match]

    assert headings[0] == "[Unreleased]"
    assert all(released)
    assert versions == sorted(versions, key=_as_numbers, reverse=True)
    assert not versions or versions[0] == __version__


def _as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def test_the_changelog_groups_its_entries() -> None:
    groups = set(re.findall(r"^### (.+)$", _text("CHANGELOG.md"), re.MULTILINE))

    assert groups <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_import_contract_names_every_module() -> None:
    (contract,) = tomllib.loads(_text("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers = {f"kernelscope.{layer.strip('()')}" for layer in contract["layers"]}

    assert [name for name in _modules() if name not in layers and "._" not in name] == []


def test_contributing_draws_the_contract() -> None:
    (contract,) = tomllib.loads(_text("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers = [layer.strip("()") for layer in contract["layers"]]

    line = " < ".join(layer for layer in reversed(layers) if layer != "__main__")

    assert f"`{line}`" in _text("CONTRIBUTING.md")


@pytest.mark.parametrize("command", ["ruff check", "ruff format --check", "mypy", "lint-imports"])
def test_a_commit_and_ci_check_the_same(command: str) -> None:
    assert f"run .venv/bin/{command}\n" in _text(".ci/run")
    assert f"entry: .venv/bin/{command}" in _text(".pre-commit-config.yaml")


@pytest.mark.parametrize("module", ["kernelscope", "kernelscope.cli"])
def test_importing_is_cheap(module: str) -> None:
    heavy = {"numpy", "pandas", "plotly", "rich", "sqlite_utils", "nvtx", "torch"}
    program = f"import sys, {module}; print(*sorted({heavy} & set(sys.modules)))"

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert done.stdout.split() == []


@pytest.mark.parametrize("module", ["kernelscope", *_modules()])
def test_public_names_exist(module: str) -> None:
    imported = importlib.import_module(module)
    public = list(getattr(imported, "__all__", ()))

    assert len(public) == len(set(public))
    assert [name for name in public if not hasattr(imported, name)] == []
