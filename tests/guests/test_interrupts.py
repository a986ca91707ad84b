"""Interrupts of a guest whose device raises one for nearly every packet: which meters charge them.
What an emulated machine's interrupts cost is nobody's; their order is the kernel's.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.bench import command

TEXT = """\
netbench: 1
name: interrupts
verify: off
lab: qemu
hosts: {snd: {}, rcv: {}}
transfer: {send: write, receive: trunc, rate: 8Mb/s, duration: 2s, warmup: 500ms, congestion: cubic}
settings: {sender.tso: off, receiver.gro: off}
sweep: {meters: [[rusage, procstat], [rusage, soak]]}
repeat: {min: 2, max: 2}
limit: 5m
"""


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.usefixtures("fetched")
def test_soak_and_procstat_charge_a_receivers_interrupts_and_rusage_does_not(
    tmp_path: Path,
) -> None:
    results = command.run(TEXT, tmp_path).results
    assert set(results.runs["status"]) == {"ok"}
    means = results.cells.groupby("metric")["mean"].mean()
    rusage, procstat, soak = (
        means[f"receiver_cpu.{meter}"] for meter in ("rusage", "procstat", "soak")
    )
    assert 0 < rusage < procstat
    assert rusage < soak
