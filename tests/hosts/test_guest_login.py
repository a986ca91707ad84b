"""A guest whose key exchange takes longer than the first attempt's patience is waited for."""

from __future__ import annotations

from pathlib import Path

import pytest

from netbench.lab import guest_console, sshd
from netbench.lab.command import find
from netbench.lab.lab import Lab, LabHost
from tests.support.sshd import Bed, bed, needs_sshd, tmp_path

__all__ = ["bed", "tmp_path"]
pytestmark = [pytest.mark.root, needs_sshd]
SLOW = 0.7
"""Seconds before a byte of the server's arrives: more than the first attempt waits."""


def test_a_slow_key_exchange_gets_more_time_by_the_attempt(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = bed.serve()
    delayed = f"ProxyCommand sh -c 'sleep {SLOW}; exec busybox nc 127.0.0.1 {server.port}'"
    known = f"HostKeyAlias [127.0.0.1]:{server.port}"
    bed.configure(bed.alias(server, name="lab-snd", more=f"{delayed}\n  {known}"))
    host = LabHost("snd", "lab-snd", "10.77.0.1", "", "data0", "ns", "127.0.0.1")
    lab = Lab("l", "qemu", tmp_path / "lab", {"snd": host}, bed.config)
    monkeypatch.setattr(sshd, "PORT", server.port)
    # the test takes no longer than it must
    monkeypatch.setattr(guest_console, "_ATTEMPT_SECONDS", SLOW)
    monkeypatch.setattr(sshd, "servers", lambda *_: [1])  # there is no guest to look at
    guest_console.await_login(lab, host, find(("ssh",)), seconds=60)
