"""Engines that differ between hosts. Version and layout of the engine on each host, at the end."""

from __future__ import annotations

from netbench.read.cautions.rule import CautionRule, Cautions, Evidence


class Engines(CautionRule):
    """The hosts ran different engines."""

    name = "engines"
    kinds = ("facts",)
    severity = 90
    reads = "`engine` and `layout` of facts.json"
    shows = "the engine of each host"
    remedy = "deploy one engine to all hosts"

    def report(self, evidence: Evidence) -> Cautions:
        engines = {
            host: f"{entries[-1].engine} {entries[-1].layout}"
            for host, entries in evidence.result.hosts.items()
            if entries
        }
        if len(set(engines.values())) > 1:
            each = "; ".join(f"{host} {engine}" for host, engine in engines.items())
            yield self.caution("The hosts ran different engines.", engines, each, kind="facts")
