"""What soakers lose on idle CPUs, as it is kept for a boot."""

from __future__ import annotations

from pathlib import Path

import pytest

from netbench.run import idle_shares
from tests.unit.analysis.test_soak import slice_of


def test_of_processes_the_quietest_window_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load of almost 1% that goes on looks idle to each window alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for load in (0.002, 0.009, 0.009):
        idle_shares.keep("boot", 0, {0: slice_of(load, 0.02), 1: slice_of(0.001, 0.02)})
    shares = {cpu: one.switched / one.elapsed for cpu, one in idle_shares.read("boot", 0).items()}
    assert shares == pytest.approx({0: 0.002, 1: 0.001}, rel=1e-3)
    idle_shares.keep("another boot", 0, {0: slice_of(0.009, 0.02)})
    (one,) = idle_shares.read("another boot", 0).values()
    assert one.switched / one.elapsed == pytest.approx(0.009, rel=1e-3)
    assert not idle_shares.read("boot", 0)
