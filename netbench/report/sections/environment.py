"""The hosts: every fact that was read, and those that could not be, with the reason."""

from __future__ import annotations

from netbench.report.blocks import Column, Section, Table
from netbench.report.source import Source

OWN = ("engine", "cpus", "clock_ticks")  # kept beside the facts in facts.json


def environment(source: Source) -> Section | None:
    """One row a fact and value; hosts and boots that agree share a row."""
    hosts = source.loaded.hosts
    rows: dict[str, dict[str, list[str]]] = {}
    everyone = [_label(host, boot, boots) for host, boots in hosts.items() for boot in boots]
    for host, boots in hosts.items():
        for boot in boots:
            for name, value in _facts(boot).items():
                rows.setdefault(name, {}).setdefault(value, []).append(_label(host, boot, boots))
    if not rows:
        return None
    columns = (Column("fact", kind="key"), Column("host", kind="key"), Column("value", kind="prose"))
    table = tuple((name, _who(who, everyone), value) for name, values in rows.items() for value, who in values.items())
    return Section("environment", "Environment", (Table("", columns, table),))


def _facts(boot: object) -> dict[str, str]:
    assert isinstance(boot, dict)
    missing = boot.get("missing", {})
    found = {name: str(boot[name]) for name in OWN if name in boot}
    for name, value in boot.get("facts", {}).items():
        if value is not None:
            found[name] = str(value)
        elif name not in missing:
            found[name] = "not read"
    return found | {name: f"not read: {reason}" for name, reason in missing.items()}


def _label(host: str, boot: object, boots: object) -> str:
    assert isinstance(boot, dict)
    assert isinstance(boots, list)
    return host if len(boots) == 1 else f"{host} boot {boot['boot']}"


def _who(who: list[str], everyone: list[str]) -> str:
    return "all" if len(who) == len(everyone) > 1 else ", ".join(who)
