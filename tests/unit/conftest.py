"""A repository whose tree is built as a kernel is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kernel_repository import Repository, prepared


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    return prepared(tmp_path, monkeypatch)
