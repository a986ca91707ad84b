"""Connections that begin with what TCP has learnt in those before them. By the facts of hosts,
unless the campaign sets what TCP keeps.
"""

from __future__ import annotations

from netbench.read.cautions.rule import CautionRule, Cautions, Evidence
from netbench.result.files import HostEntry

SETTINGS = {"tcp_metrics", "sysctl.net.ipv4.tcp_no_metrics_save"}
EMPTY = "none"


class TcpMetrics(CautionRule):
    """TCP kept what it learnt in one run (round-trip time, reordering, ssthresh) for the
    connections of the next, so runs may depend on the run before.
    """

    name = "tcp_metrics"
    severity = 75
    reads = "the facts `tcp_no_metrics_save` and `tcp_metrics`, and `not_held` of facts.json"
    shows = "the facts of each host, and why the campaign did not change them"
    remedy = (
        "write `settings: {tcp_metrics: drop}`, which needs root or `sudo -n`; or as root on each"
        " host `sysctl net.ipv4.tcp_no_metrics_save=1 && ip tcp_metrics flush`"
    )

    def report(self, evidence: Evidence) -> Cautions:
        handled = evidence.result.handled
        if SETTINGS & {key.removeprefix("sender.").removeprefix("receiver.") for key in handled}:
            return
        kept = {
            host: next(filter(_is_used, entries), None)
            for host, entries in evidence.result.hosts.items()
        }
        shown = [f"{host}: {_in_words(entry)}" for host, entry in kept.items() if entry]
        if shown:
            yield self.caution(
                "What TCP learnt in one run was handed to the connections of the next.",
                (host for host, entry in kept.items() if entry),
                "; ".join(shown),
            )


def _is_used(entry: HostEntry) -> bool:
    """Whether connections begin with what others have left; not where that is not known."""
    saved, known = entry.facts.get("tcp_no_metrics_save"), entry.facts.get("tcp_metrics")
    return saved == "0" or (bool(entry.not_held) and known not in (None, EMPTY))


def _in_words(entry: HostEntry) -> str:
    facts = ("tcp_no_metrics_save", "tcp_metrics")
    shown = ", ".join(f"{name} {entry.facts[name]}" for name in facts if entry.facts.get(name))
    why = entry.not_held.get("tcp_metrics", "")
    return f"{shown} ({why})" if why else shown
