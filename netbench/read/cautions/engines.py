"""Engines that differ between hosts."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.read.cautions.base import Caution, CautionRule, Evidence


class Engines(CautionRule):
    """Version and layout of the engine on each host, at the end."""

    name = "engines"
    kinds = ("facts",)
    severity = 90
    about = "The hosts ran different engines."
    reads = "`engine` and `layout` of facts.json"
    shows = "the engine of each host"
    remedy = "deploy one engine to all hosts"

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        engines = {
            host: f"{entries[-1].engine} {entries[-1].layout}"
            for host, entries in evidence.result.hosts.items()
            if entries
        }
        if len(set(engines.values())) > 1:
            each = "; ".join(f"{host} {engine}" for host, engine in engines.items())
            yield self.caution("The hosts ran different engines.", engines, each, kind="facts")
