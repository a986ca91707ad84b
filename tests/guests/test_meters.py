"""Meters on a machine of its own, whose interrupts no process pays for: a flood of datagrams from
this machine that nobody there reads.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from netbench.engine.worker import Worker
from netbench.lab import Lab
from netbench.lab.lab import LabHost
from netbench.model import Host
from netbench.run.single_meter import observe, reading_of
from netbench.run.soak_meter import read_window
from netbench.run.worker_pool import open_channel

SECONDS = 1.5
OURS = "10.77.0.200/24"  # on the bridge of the data link
FLOOD = """
import socket, sys, threading
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set())).start()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
    while not over.wait(0.005):
        for _ in range(150):
            out.sendto(b"-" * 64, (sys.argv[1], 9))
"""


@contextmanager
def flood(there: LabHost) -> Iterator[None]:
    inside = ("ip", "netns", "exec", there.namespace)
    subprocess.run((*inside, "ip", "address", "replace", OURS, "dev", "data"), check=True)
    argv = (*inside, sys.executable, "-c", FLOOD, there.address)
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as flooding:
        yield
        assert flooding.poll() is None
        assert flooding.stdin
        flooding.stdin.close()
    subprocess.run((*inside, "ip", "address", "delete", OURS, "dev", "data"), check=True)


def charged(worker: Worker) -> dict[str, float]:
    """CPUs busy by each meter; by rusage, the process that reads it."""
    found = {"soak": sum(cpu.busy for cpu in read_window(worker, SECONDS, 0).per_cpu)}
    for meter, names, unit in (
        ("procstat", ("user", "nice", "system", "irq", "softirq"), 1 / worker.hello.clock_ticks),
        ("rusage", ("cpu_ns",), 1e-9),
    ):
        read = reading_of(worker, meter, observe(worker, meter, SECONDS))
        spent = sum(read.counters[name][1] - read.counters[name][0] for name in names)
        found[meter] = spent * unit / (read.time_ns[1] - read.time_ns[0]) * 1e9
    return found


@pytest.mark.slow
def test_soak_and_procstat_charge_the_interrupts_of_a_guest_and_rusage_does_not(made: Lab) -> None:
    there = made.hosts["rcv"]
    host = Host("rcv", there.ssh, there.address, there.interface, str(made.ssh_config))
    worker = Worker(open_channel(host).start_mover(), "rcv")
    try:
        quiet = charged(worker)
        with flood(there):
            loaded = charged(worker)
    finally:
        worker.close()
    more = {meter: loaded[meter] - quiet[meter] for meter in loaded}
    assert more["rusage"] < min(more["soak"], more["procstat"]), (quiet, loaded)
