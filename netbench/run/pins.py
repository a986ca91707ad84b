"""Which CPUs each side's flows run on."""

from __future__ import annotations

from netbench.base.errors import RequestError
from netbench.model import Pin
from netbench.run.cpus import Cpus

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
