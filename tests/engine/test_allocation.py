"""Nothing is allocated in the measured window: calls, by malloc_hook.c, beside its edges."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from netbench.engine.binding import Edge
from netbench.engine.own_engine import local
from tests.support.engine_pair import MS, Options, Pair, Side, covering, data_methods, open_pair
from tests.support.hooks import dynamic_worker, hook

RUNS = 5
Build = Callable[[Path], tuple[str, ...]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Starts a dynamic worker with the hook preloaded, which writes to that file."""
    hooked = hook("malloc_hook", tmp_path_factory.mktemp("hook"))
    worker = str(dynamic_worker(tmp_path_factory))
    return lambda log: ("env", f"LD_PRELOAD={hooked}", f"NB_MALLOC_LOG={log}", worker)


def inside(log: Path, windows: list[tuple[int, int]]) -> list[str]:
    """What was written down within the windows. All of it: a list that overran is no proof."""
    *lines, end = log.read_text().splitlines()
    assert end == f"end {len(lines)}"
    found = [(int(line.split()[0]), line) for line in lines]
    assert any(ns < windows[0][0] for ns, _ in found), "it saw not even the run prepared"
    assert any(ns > windows[-1][1] for ns, _ in found), "it saw not even the result written"
    return [line for ns, line in found if any(opened <= ns <= closed for opened, closed in windows)]


@contextlib.contextmanager
def watched(
    built: Build, folder: Path
) -> Iterator[tuple[Pair, list[tuple[Side, Side]], list[str]]]:
    """Workers with the hook, a list for runs, and one of the allocator's calls in their windows."""
    logs = [folder / side for side in ("sender", "receiver")]
    runs: list[tuple[Side, Side]] = []
    found: list[str] = []
    with open_pair(*(built(log) for log in logs)) as pair:
        yield pair, runs, found
    for log, sides in zip(logs, zip(*runs, strict=True), strict=True):
        found += inside(log, [(side.ns(Edge.OPEN), side.ns(Edge.CLOSE)) for side in sides])


@pytest.mark.parametrize(("send", "receive"), [*covering(local()), ("null", "null")])
def test_nothing_is_allocated_in_the_window(
    built: Build, tmp_path: Path, send: str, receive: str
) -> None:
    """Of a timed run, with samples, of one bounded by bytes, and of streams that share a thread."""
    with watched(built, tmp_path) as (pair, runs, found):
        while not (runs and runs[-1][1].samples) and len(runs) < RUNS:
            runs.append(pair.run(send, receive, duration=30 * MS, warmup=5 * MS, sample=3 * MS))
        assert runs[-1][1].samples
        if send != "null":
            runs.append(pair.run(send, receive, bytes=4 * 2**20, warmup=2 * MS))
            if not local().send[send].has("alone"):
                runs.append(pair.run(send, receive, duration=30 * MS, streams=3, threads=1))
    assert found == []


def test_nothing_is_allocated_on_the_way_to_a_file(built: Build, tmp_path: Path) -> None:
    into: Options = {"sink": "file", "sink_path": str(tmp_path / "sink"), "overwrite": 1}
    methods = local().receive
    keeping = [name for name in data_methods(local(), "receive") if methods[name].has("to_file")]
    with watched(built, tmp_path) as (pair, runs, found):
        for receive in keeping:
            runs.append(pair.run("write", receive, to_receiver=into, bytes=2**20))
    assert found == []
