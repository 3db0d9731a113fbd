"""The NVTX tool of the tests, compiled once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.annotation.recorder import SOURCE, compiled


@pytest.fixture(scope="session")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(SOURCE, tmp_path_factory.mktemp("nvtx"))
