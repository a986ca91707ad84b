"""The loops that the bench holds the engine's methods against move what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.bench import hand_loops
from tools.bench.instructions import METHODS, Method

CHUNK = 16 * 1024
SIZE = 64 * CHUNK


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hand_loops.build(tmp_path_factory.mktemp("loops"))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.title)
def test_a_loop_moves_what_it_says(program: Path, tmp_path: Path, method: Method) -> None:
    """run() compares the bytes that a sender's peer took; those of a sink are compared here."""
    file = tmp_path / "file"
    if method.role == "send":
        file.write_bytes(bytes(i * 7 % 251 for i in range(SIZE)))
    job = hand_loops.Job(method.loop_name, method.source == "memory", file, SIZE, CHUNK)
    chunks, _ = hand_loops.run(program, job)
    assert chunks == SIZE // CHUNK if method.role == "send" else chunks > 0
    if method.sink:
        assert file.read_bytes() == bytes(SIZE)
