"""CPUs that the workers of a host may use, and those that each side's flows run on."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netbench.base.errors import EngineError, HostError, RequestError
from netbench.engine.worker import Worker
from netbench.model import Pin

CPUS_MAX = 1 << 16
STATUS = "/proc/self/status"
SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


@dataclass(frozen=True)
class Cpus:
    """CPUs of one host: those that its worker may use, and for each the CPUs of the same core."""

    allowed: Sequence[int]
    siblings: Mapping[int, Sequence[int]]


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """CPU numbers of a list as the kernel writes it (`0-3,8`), in order. Source: cpuset(7), "List
    format". Errors: ValueError for what is none.
    """
    cpus: set[int] = set()
    for part in text.strip().split(","):
        low, _, high = part.partition("-")
        if int(high or low or 0) >= CPUS_MAX:
            raise ValueError(f"a list of CPUs beyond {CPUS_MAX}: {text[:40]!r}")
        if low:
            cpus |= set(range(int(low), int(high or low) + 1))
    return tuple(sorted(cpus))


def read_cpus(worker: Worker) -> Cpus:
    """CPUs of a worker's host. Errors: EngineError; HostError; those of losing the worker."""
    try:
        status, _ = worker.operate("file", STATUS)
        label = "Cpus_allowed_list:"
        allowed = parse_cpu_list(
            next(line for line in status.splitlines() if line.startswith(label))[len(label) :]
        )
        siblings: dict[int, tuple[int, ...]] = {}
        for cpu in allowed:
            with contextlib.suppress(EngineError):
                siblings[cpu] = parse_cpu_list(worker.operate("file", SIBLINGS.format(cpu))[0])
    except (ValueError, StopIteration) as error:
        what = f"its list of CPUs cannot be read ({str(error) or 'it is empty'})"
        raise HostError(f"{worker.host}: {what}; see {STATUS} there") from error
    return Cpus(allowed, siblings)


Numbers = tuple[int, ...]
"""CPUs in the order in which threads take them; (): not pinned."""


def choose(pin: Pin, sender: Cpus, receiver: Cpus, one_machine: bool) -> tuple[Numbers, Numbers]:
    """CPUs for the sender's and the receiver's flows.

    `same` and `apart` speak of one machine; between two machines both pin each side to its first
    CPU. `apart` takes another core where there is one, else another CPU of the same core. Errors:
    RequestError when there is no such CPU.
    """
    if pin.kind == "none":
        return (), ()
    if pin.kind == "cpus":
        _check(pin.sender, sender, "sender")
        _check(pin.receiver, receiver, "receiver")
        return pin.sender, pin.receiver
    first = sender.allowed[0]
    if not one_machine:
        return (first,), (receiver.allowed[0],)
    if pin.kind == "same":
        return (first,), (first,)
    others = [cpu for cpu in receiver.allowed if cpu != first]
    if not others:
        raise RequestError(
            "pin: apart needs two CPUs, and the worker may use only one; use pin: none or same"
        )
    cores = [cpu for cpu in others if cpu not in sender.siblings.get(first, ())]
    return (first,), ((cores or others)[0],)


def _check(wanted: Numbers, cpus: Cpus, side: str) -> None:
    missing = [str(cpu) for cpu in wanted if cpu not in cpus.allowed]
    if missing:
        which = "CPU " + missing[0] if len(missing) == 1 else "CPUs " + ", ".join(missing)
        allowed = ", ".join(map(str, cpus.allowed))
        raise RequestError(f"pin: {side}: the worker may not use {which}, only {allowed}")
