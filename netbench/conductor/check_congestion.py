"""Whether the kernels of both ends have the congestion control of a transfer, and let the worker
choose it.
"""

from __future__ import annotations

from collections.abc import Iterator

from netbench.conductor.finding import Finding
from netbench.engine.worker import Worker
from netbench.errors import EngineError
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
        default, _ = sender.operate("file", DEFAULT)
        if default.strip() == "bbr":
            yield Finding(
                "warning",
                sender.host,
                "the default congestion control, bbr, paces the sender",
                "set congestion: cubic to measure what the CPU can do",
            )
        return
    for worker in {each.host: each for each in (receiver, sender)}.values():
        available, _ = worker.operate("file", AVAILABLE)
        if congestion in available.split():
            yield from _may_choose(congestion, worker)
        else:
            yield Finding(
                "error",
                worker.host,
                f"congestion: the kernel does not have {congestion}, only {available.strip()}",
                f"load its module (modprobe tcp_{congestion})",
                skips=True,
            )


def _may_choose(name: str, worker: Worker) -> Iterator[Finding]:
    """Without CAP_NET_ADMIN a process may choose some congestion controls only (tcp(7)). Where the
    host does not tell them, the runs do.
    """
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
