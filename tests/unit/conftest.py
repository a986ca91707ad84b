"""A repository whose tree is built as a kernel is; Ctrl-C as in a process of netbench."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from netbench.base.cancel import held_back
from tests.support.kernel_repository import Repository, prepared

PAIRS = """\
netbench: 1
name: pairs
verify: off
hosts: {a: {ssh: a, address: 10.0.0.1}, b: {ssh: b, address: 10.0.0.2},
        c: {ssh: c, address: 10.0.0.3}, d: {ssh: d, address: 10.0.0.4}}
pairs: [{sender: a, receiver: b}, {sender: c, receiver: d}]
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    return prepared(tmp_path, monkeypatch)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT is handled as in a process that runs netbench."""
    before = signal.signal(signal.SIGINT, lambda *_: held_back.interrupt())
    yield
    signal.signal(signal.SIGINT, before)


class Pressed(threading.Thread):
    """A thread after whose start the user presses Ctrl-C."""

    def start(self) -> None:
        super().start()
        signal.raise_signal(signal.SIGINT)


Pressing = Callable[[], contextlib.AbstractContextManager[None]]


@pytest.fixture
def pressing(interruptible: None, monkeypatch: pytest.MonkeyPatch) -> Pressing:
    """A context in which every thread that is started is Pressed."""

    @contextlib.contextmanager
    def context() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(threading, "Thread", Pressed)
            yield

    return context
