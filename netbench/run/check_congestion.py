"""Whether the kernels of both ends have the congestion control of a transfer, and let the worker
choose it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from netbench.base.errors import EngineError
from netbench.engine.worker import Worker
from netbench.model import OR_DEFAULT
from netbench.run.finding import Finding
from netbench.settings.base import fields

AVAILABLE = "/proc/sys/net/ipv4/tcp_available_congestion_control"
DEFAULT = "/proc/sys/net/ipv4/tcp_congestion_control"
ALLOWED = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
NET_ADMIN = 1 << 12  # capability.h


def check_congestion(congestion: str | None, sender: Worker, receiver: Worker) -> Iterator[Finding]:
    """Findings about the congestion control of both ends' sockets; None is the host's default.
    Errors: those of losing a worker.
    """
    if congestion is None:
        if _default(sender) == "bbr":
            yield Finding(
                "warning",
                sender.host,
                "the default congestion control, bbr, paces the sender",
                "set congestion: cubic to measure what the CPU can do",
            )
        return
    name = congestion.removesuffix(OR_DEFAULT)
    ends = {each.host: each for each in (receiver, sender)}
    refused = {host: found for host, worker in ends.items() for found in _refusal(name, worker)}
    if name == congestion:
        yield from refused.values()
        return
    own = {host: _default(ends[host]) for host in refused}
    for host, found in refused.items():
        what = f"{found.what}: it uses its default, {own[host]}"
        yield replace(found, level="warning", what=what, skips=False)
    if len({own.get(host, name) for host in ends}) > 1:
        yield Finding(
            "warning",
            sender.host,
            f"congestion: it uses {own.get(sender.host, name)} as the sender, and"
            f" {receiver.host} {own.get(receiver.host, name)} as the receiver",
        )


def _default(worker: Worker) -> str:
    return worker.operate("file", DEFAULT)[0].strip()


def _refusal(name: str, worker: Worker) -> Iterator[Finding]:
    """Why a worker cannot have a congestion control.

    Without CAP_NET_ADMIN a process may choose some only (tcp(7)). Where the host does not tell
    them, the runs do.
    """
    available, _ = worker.operate("file", AVAILABLE)
    if name not in available.split():
        yield Finding(
            "error",
            worker.host,
            f"congestion: the kernel does not have {name}, only {available.strip()}",
            f"load its module (modprobe tcp_{name})",
            skips=True,
        )
        return
    allowed, status = worker.ask([("file", (ALLOWED,)), ("file", ("/proc/self/status",))])
    if (
        isinstance(allowed, EngineError)
        or isinstance(status, EngineError)
        or name in allowed.split()
    ):
        return
    try:
        capabilities = int(fields(status).get("CapEff", "0"), 16)
    except ValueError:
        return
    if not capabilities & NET_ADMIN:
        known = allowed.strip()
        remedy = (
            "log in as root, or allow it on the host: sysctl"
            f" net.ipv4.tcp_allowed_congestion_control='{known} {name}'"
        )
        yield Finding(
            "error",
            worker.host,
            f"congestion: an ordinary user may not select {name}, only {known}",
            remedy,
            skips=True,
        )
