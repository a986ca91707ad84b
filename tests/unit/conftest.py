"""A repository whose tree is built as a kernel is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netbench.kernels.compile import NEEDS
from tests.support.kernel_repository import Repository


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """One, an empty cache, and programs that stand for those that only a kernel needs."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in NEEDS:
        if name not in ("git", "make", "gcc", "ld"):
            (programs / name).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{programs}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Repository(tmp_path / "linux")
