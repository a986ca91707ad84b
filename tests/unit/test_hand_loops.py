"""The loops that the bench holds the engine's methods against: there is one for each, and each moves
what it says.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from netbench.engine.own_engine import local
from tests.support.engine_pair import data_methods
from tools.bench import hand_loops
from tools.bench.instructions import METHODS, Method

CHUNK = 16 * 1024
SIZE = 64 * CHUNK


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hand_loops.build(tmp_path_factory.mktemp("loops"))


@pytest.mark.parametrize("role", ["send", "receive"])
def test_every_method_that_moves_data_here_has_a_loop(role: str) -> None:
    there = {method.name for method in METHODS if method.role == role}
    assert there == set(data_methods(local(), role))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.title)
@pytest.mark.parametrize("place", hand_loops.PLACES)
def test_a_loop_moves_what_it_says(
    program: Path, tmp_path: Path, method: Method, place: str
) -> None:
    """run() compares the bytes that a sender's peer took; those of a sink are compared here."""
    file = tmp_path / "file"
    if method.role == "send":
        file.write_bytes(bytes(i * 7 % 251 for i in range(SIZE)))
    job = hand_loops.Job(method.loop_name, method.source == "memory", file, SIZE, CHUNK)
    chunks, _ = hand_loops.run(program, place, job)
    assert chunks == SIZE // CHUNK if method.role == "send" else chunks > 0
    if method.sink:
        assert file.read_bytes() == bytes(SIZE)
