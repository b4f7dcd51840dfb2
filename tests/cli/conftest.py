"""Fixtures of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from placement.io import save_instance
from tests.io.worlds import small


@pytest.fixture
def world(tmp_path: Path) -> Path:
    save_instance(small(), tmp_path / "world")
    return tmp_path / "world"
