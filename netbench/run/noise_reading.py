"""What is read on one host for the noise monitor, with one request a worker."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from netbench.base.errors import EngineError
from netbench.engine.worker import Worker
from netbench.run.noise_counters import cpu_states, device, interface, process, protocols, softnet

Question = tuple[str, tuple[str, ...]]
"""An operation of a worker that only reads, and its target."""
CPUS = "/sys/devices/system/cpu"
IRQBALANCE: Question = ("list", ("/run/irqbalance",))  # where it keeps its socket
MOST_POLICIES = 4  # whose frequency is read
GAUGE_LENGTH = 100  # of a gauge that is a text
MOST_COUNTERS = 20_000  # of one file, or of one interface


@dataclass
class Reading:
    """What one host read at a moment: counters by name, and gauges. `cpu` and `own` where it speaks
    for its kernel.
    """

    ns: int
    counters: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, Any] = field(default_factory=dict)
    cpu: dict[str, int] = field(default_factory=dict)
    workers: dict[int, int] = field(default_factory=dict)  # process -> ticks
    controller: int = 0  # ticks that this process has used, where it runs on that kernel
    missing: dict[str, str] = field(default_factory=dict)


Take = Callable[[Reading, str], None]


def _counted(parse: Callable[[str], Mapping[str, int]]) -> Take:
    def take(reading: Reading, text: str) -> None:
        reading.counters.update(_checked(parse(text)))

    return take


def _checked(counters: Mapping[str, int]) -> Mapping[str, int]:
    """Errors: ValueError for numbers, or for more of them, that no kernel has."""
    if len(counters) > MOST_COUNTERS or any(abs(n) >= 2**63 for n in counters.values()):
        raise ValueError(f"{len(counters)} counters that no kernel has")
    return counters


def _one(name: str) -> Take:
    return _counted(lambda text: {name: int(text)})


def _gauge(name: str, parse: Callable[[str], Any]) -> Take:
    def take(reading: Reading, text: str) -> None:
        value = parse(text)
        if isinstance(value, str):
            value = value[:GAUGE_LENGTH]
        elif not -(2**63) < value < 2**63:
            raise ValueError(f"{name} {value}")
        reading.gauges[name] = value

    return take


def _frequency(reading: Reading, text: str) -> None:
    khz = _checked({"khz": int(text)})["khz"]
    reading.gauges.setdefault("mhz", []).append(khz // 1000)


def _of_kernel() -> dict[Question, Take]:
    def file(path: str) -> Question:
        return "file", (path,)

    return {
        file("/proc/stat"): lambda reading, text: reading.cpu.update(_checked(cpu_states(text))),
        file("/proc/loadavg"): _gauge("load", lambda text: float(text.split()[0])),
        file("/proc/net/softnet_stat"): _counted(softnet),
        IRQBALANCE: _gauge("irqbalance", lambda text: "running" if ".sock" in text else ""),
        file(f"{CPUS}/cpu0/thermal_throttle/core_throttle_count"): _one("throttle.core"),
        file(f"{CPUS}/cpu0/thermal_throttle/package_throttle_count"): _one("throttle.package"),
    }


def _of_policies(names: str) -> dict[Question, Take]:
    """Frequencies of some CPUs, spread over all of them, and the governor of the first."""
    policies = sorted(
        (name for name in names.split() if name.startswith("policy")),
        key=lambda name: int(name[6:]),
    )
    chosen = policies[:: max(1, -(-len(policies) // MOST_POLICIES))]
    takes: dict[Question, Take] = {
        ("file", (f"{CPUS}/cpufreq/{name}/scaling_cur_freq",)): _frequency for name in chosen
    }
    if chosen:
        takes["file", (f"{CPUS}/cpufreq/{chosen[0]}/scaling_governor",)] = _gauge(
            "governor", str.strip
        )
    return takes


def _of_network() -> dict[Question, Take]:
    return {
        ("file", ("/proc/net/snmp",)): _counted(protocols),
        ("file", ("/proc/net/netstat",)): _counted(protocols),
    }


def _of_interface(name: str) -> dict[Question, Take]:
    return {
        ("file", ("/proc/net/dev",)): _counted(lambda text: interface(text, name)),
        ("file", (f"/sys/class/net/{name}/carrier_changes",)): _one(f"{name}.carrier_changes"),
        ("statistics", (name,)): _counted(lambda text: device(text, name)),
    }


class Watch:
    """What is read on one host, with one request a worker. What cannot be read the first time is
    not asked for again.
    """

    def __init__(self, worker: Worker, name: str, kernel: bool, network: bool) -> None:
        """`name`: the data interface, "" where it is not known; `kernel`, `network`: whether the
        host speaks for these.
        """
        self.kernel = kernel
        self._takes: dict[Question, Take] = {}
        if kernel:
            policies = worker.ask([("list", (f"{CPUS}/cpufreq",))])[0]
            self._takes |= _of_kernel() | _of_policies(
                policies if isinstance(policies, str) else ""
            )
        if network:
            self._takes |= _of_network() | (_of_interface(name) if name else {})
        self._missing: dict[str, str] = (
            {}
            if name or not network
            else {"interface": "the host does not say which has its address"}
        )

    def read(self, workers: list[Worker]) -> Reading:
        """Errors: those of losing a worker."""
        reading = Reading(time.monotonic_ns(), missing=self._missing)
        self._missing = {}
        own: list[Question] = [("file", (f"/proc/{one.hello.pid}/stat",)) for one in workers]
        answers = workers[0].ask([*own, *self._takes])
        for question, answer in zip(list(self._takes), answers[len(own) :], strict=True):
            self._take(reading, question, answer)
        for text in answers[: len(own)]:
            if isinstance(text, str):
                with suppress(ValueError, IndexError):  # it is no line of /proc/PID/stat
                    pid, ticks = process(text)
                    reading.workers |= {pid: _checked({"ticks": ticks})["ticks"]}
        return reading

    def _take(self, reading: Reading, question: Question, answer: str | EngineError) -> None:
        what = " ".join(question[1])
        if (
            isinstance(answer, EngineError)
            and question == IRQBALANCE
            and answer.errno == errno.ENOENT
        ):
            answer = ""
        try:
            if isinstance(answer, EngineError):
                raise ValueError(answer.message.removeprefix(f"{what}: "))
            self._takes[question](reading, answer)
        except (ValueError, IndexError) as error:
            reading.missing[what] = str(error)
            del self._takes[question]
