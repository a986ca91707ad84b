"""How many CPUs a host has."""

from __future__ import annotations

from collections.abc import Iterable

from netbench.result_files import HostEntry


def cpus_online(entries: Iterable[HostEntry]) -> int | None:
    """CPUs of a host that were online, as netperf counts them; None where that changed, or is not
    known.
    """
    counts = {_count(entry.known.get("cpus_online", "")) or entry.cpus for entry in entries}
    return counts.pop() or None if len(counts) == 1 else None


def _count(text: str) -> int:
    """How many CPUs a list of the kernel holds (`0-3,8` is 5: cpuset(7), "List format"); 0 when it
    is none.
    """
    try:
        edges = [part.partition("-") for part in text.split(",")]
        return sum(int(high or low) - int(low) + 1 for low, _, high in edges)
    except ValueError:
        return 0
