"""The meters `psi` and `energy`, and facts that meters depend on. RAPL is simulated by files in a mount namespace, since few machines
that run these tests have it: everything else is real.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from netbench import campaign, load
from netbench.base.errors import CampaignError
from netbench.engine.binding import Edge
from netbench.engine.worker import Worker
from netbench.facts.registry import BY_NAME
from netbench.facts.system import irq_time_accounting
from netbench.hosts.probe import read_facts
from tests.support.engine_pair import MS, PATIENCE, mover, observe, observed
from tests.support.local import netbench_argv
from tests.support.needs import needs
from tests.support.running import stored_records

PRESSURE = Path("/proc/pressure")
FILES = {
    "cpu_some_us": ("cpu", "some"),
    "irq_full_us": ("irq", "full"),
    "memory_some_us": ("memory", "some"),
    "memory_full_us": ("memory", "full"),
    "io_some_us": ("io", "some"),
    "io_full_us": ("io", "full"),
}


def pressure() -> dict[str, int]:
    """Totals in µs of the files that can be read."""
    totals = {}
    for name, (file, kind) in FILES.items():
        try:
            lines = (PRESSURE / file).read_text().splitlines()
        except OSError:
            continue
        totals[name] = next(int(line.rpartition("=")[2]) for line in lines if line.startswith(kind))
    return totals


def test_pressure_is_what_proc_says() -> None:
    before = pressure()
    if not before:
        pytest.skip("needs a kernel with /proc/pressure (CONFIG_PSI, psi=1)")
    with mover() as worker:
        side = observe(worker, "psi")
        unread = worker.catalogue.meters["psi"].unread
    after = pressure()
    for name, (file, _) in FILES.items():
        if name in before:
            opening, closing = (side.total("psi", name, e) for e in (Edge.OPEN, Edge.CLOSE))
            assert before[name] <= opening <= closing <= after[name]
            assert f"psi.{name}" not in unread
        else:
            assert side.numbers("psi", name, Edge.CLOSE) == []
            assert f"/proc/pressure/{file}: " in unread[f"psi.{name}"]


ZONES = {
    "intel-rapl:0": ("package-0", 1000, 995),
    "intel-rapl:0:0": ("core", 1000, 10),
    "intel-rapl:0:1": ("dram", 500, 7),
    "intel-rapl:1": ("package-1", 1000, 0),
    "intel-rapl:2": ("psys", 9000, 1),
    "intel-rapl-mmio:0": ("package-0", 1000, 1),
}
"""Name, range, and energy of each zone at first."""


def script() -> str:
    lines = ["mount -t tmpfs tmpfs /sys/class"]
    for zone, (name, most, energy) in ZONES.items():
        at = f"/sys/class/powercap/{zone}"
        lines.append(
            f"mkdir -p {at}; echo {name} > {at}/name; echo {most} > {at}/max_energy_range_uj;"
            f" echo {energy} > {at}/energy_uj; chmod 400 {at}/energy_uj"
        )
    return "; ".join([*lines, 'exec "$@"'])


@pytest.fixture
@needs("root")
def rapl() -> Iterator[Worker]:
    """A mover where powercap has these zones."""
    with mover("unshare", "--mount", "sh", "-ec", script(), "sh") as worker:
        yield worker


def test_energy_goes_on_where_a_zone_begins_again_at_0(rapl: Worker) -> None:
    rapl.prepare({"role": "observe", "meters": "energy", "duration": MS})
    root = Path(f"/proc/{rapl.hello.pid}/root/sys/class/powercap")
    for name, number in (("0", 10), ("0:1", 57), ("1", 100), ("2", 4)):
        (root / f"intel-rapl:{name}" / "energy_uj").write_text(f"{number}\n")
    side = observed(rapl)
    expected = {"package_uj": (1000 - 995 + 10) + 100, "dram_uj": 50, "counted_uj": 165}
    assert {name: side.total("energy", name, Edge.OPEN) for name in expected} == expected


GROWING = """
at=/sys/class/powercap/intel-rapl:0; mkdir -p $at
echo package-0 > $at/name; echo 1000000000 > $at/max_energy_range_uj; echo 1 > $at/energy_uj
(while sleep 0.02; do echo $(($(cat $at/energy_uj) + 1000)) > $at/energy_uj; done) <&- >&- 2>&- &
trap "kill $!" EXIT
"$@"
"""


@pytest.mark.root
@pytest.mark.slow
def test_a_campaign_counts_energy_while_its_hosts_are_idle_too(tmp_path: Path) -> None:
    """A zone that grows all the time: what the idle window before the block counted is in the
    record, and is taken off.
    """
    file = tmp_path / "energy.yaml"
    file.write_text(
        "netbench: 1\nname: e\nverify: off\nmeters: [rusage, energy]\n"
        "transfer: {duration: 300ms, warmup: 20ms}\nrepeat: {min: 1, max: 1}\n"
    )
    grow = f"mount -t tmpfs tmpfs /sys/class\n{GROWING}"
    run = netbench_argv(["run", file, "--results", tmp_path / "r"])
    argv = ["unshare", "--mount", "sh", "-ec", grow, "sh", *run]
    subprocess.run(argv, check=True, capture_output=True, text=True, timeout=PATIENCE)
    (result,) = (tmp_path / "r" / "e").iterdir()
    (record,) = stored_records(result)
    energy = record["sender"]["energy"]
    assert "energy" not in record["receiver"], "both ends are one kernel"
    (idle, counted), seconds = (
        [energy[name][1] - energy[name][0] for name in ("idle_counted_uj", "counted_uj")],
        [(one[1] - one[0]) / 1e9 for one in (energy["idle_time_ns"], record["sender"]["time_ns"])],
    )
    assert idle > 0
    assert counted > 0
    runs = load(result).runs.iloc[0]
    assert runs["energy_less_idle"] == pytest.approx(
        runs["energy"] * (1 - idle / seconds[0] * seconds[1] / counted)
    )


def test_a_zone_that_goes_takes_its_sum_along(rapl: Worker) -> None:
    """And a machine without any zone says so."""
    rapl.prepare({"role": "observe", "meters": "energy", "duration": MS})
    root = Path(f"/proc/{rapl.hello.pid}/root/sys/class/powercap")
    os.truncate(root / "intel-rapl:0:1" / "energy_uj", 0)
    side = observed(rapl)
    assert side.numbers("energy", "dram_uj", Edge.CLOSE) == []
    assert side.total("energy", "package_uj", Edge.CLOSE) == 0
    empty = 'mount -t tmpfs tmpfs /sys/class; mkdir /sys/class/powercap; exec "$@"'
    with mover("unshare", "--mount", "sh", "-ec", empty, "sh") as worker:
        unread = worker.catalogue.meters["energy"].unread
    why = "this machine has no energy counters (RAPL, in /sys/class/powercap)"
    assert unread == {"energy": why}


@pytest.mark.parametrize("meter", ["psi", "energy"])
def test_what_soakers_would_change_is_not_measured_beside_them(meter: str) -> None:
    with pytest.raises(CampaignError, match=rf"meters: {meter} says nothing beside soak"):
        campaign.parse(f"netbench: 1\nname: x\nmeters: [soak, {meter}]\n", "x.yaml")


def test_the_tick_rate_is_that_of_the_coarse_clock() -> None:
    """Which moves at each tick."""
    coarse = 6  # CLOCK_MONOTONIC_COARSE, which Python does not name
    with mover() as worker:
        assert worker.hello.tick_rate == round(1 / time.clock_getres(coarse))


def test_the_accounting_of_interrupts_is_read_from_the_configuration() -> None:
    hz, name = "CONFIG_HZ=250\n", "CONFIG_IRQ_TIME_ACCOUNTING"
    assert irq_time_accounting(f"{name}=y\n{hz}") == "on"
    for text in (f"# {name} is not set\n{hz}", f"CONFIG_HAVE_IRQ_TIME_ACCOUNTING=y\n{hz}"):
        assert irq_time_accounting(text) == "off"
    with pytest.raises(ValueError, match="CONFIG_HZ"):
        irq_time_accounting("")


def test_the_kernels_configuration_is_found() -> None:
    config = Path("/proc/config.gz")
    if not config.is_file():
        pytest.skip("needs a kernel with /proc/config.gz (CONFIG_IKCONFIG_PROC)")
    lines = gzip.decompress(config.read_bytes()).decode().splitlines()
    with mover() as worker:
        facts, missing = read_facts(worker.ask, {}, [BY_NAME["irq_time_accounting"]])
    measured = "CONFIG_IRQ_TIME_ACCOUNTING=y" in lines
    assert (facts, missing) == ({"irq_time_accounting": "on" if measured else "off"}, {})
    assert f"CONFIG_HZ={worker.hello.tick_rate}" in lines
