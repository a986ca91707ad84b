"""Parsers for facts about interfaces and routes. Sources: ethtool(8), tc(8), ip-route(8)."""

from __future__ import annotations

import hashlib
from collections import Counter

from netbench.facts.fact_text import field, fields


def features(text: str) -> str:
    """The features that are on, then those that are off and could be on."""
    on, off = [], []
    for name, state in fields(text).items():
        if state.startswith("on"):
            on.append(name)
        elif "[fixed]" not in state:
            off.append(name)
    return f"on: {' '.join(on) or 'none'}; off: {' '.join(off) or 'none'}"


def link_speed(text: str) -> str:
    """The speed of a link in Mb/s. Errors: ValueError, also for an interface without a link, whose
    driver names a number all the same.
    """
    if fields(text).get("driver") in ("veth", "tun"):
        raise ValueError("it has no link: its driver names a speed that holds for nothing")
    return field("speed")(text)


def of_maximum(text: str) -> str:
    """`rx: 256` and `rx_max: 4096` as `rx 256 of 4096`, without what is 0 or absent."""
    absent = ("0", "")
    values = fields(text)
    parts = []
    for name, value in values.items():
        maximum = values.get(f"{name}_max", "")
        if not name.endswith("_max") and (value not in absent or maximum not in absent):
            parts.append(f"{name} {value}" + (f" of {maximum}" if maximum not in absent else ""))
    return ", ".join(parts) or "none"


def qdiscs(text: str) -> str:
    """Kinds of an interface's qdiscs, the root's first; options as a digest. Errors: ValueError."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    kinds = Counter((parent == "root", _qdisc(rest)) for parent, *rest in lines)
    ordered = sorted(kinds.items(), key=lambda item: not item[0][0])
    if not ordered:
        raise ValueError("the interface has no qdisc")
    return ", ".join(f"{kind} x{n}" if n > 1 else kind for (_, kind), n in ordered)


def _qdisc(rest: list[str]) -> str:
    options = "".join(rest[2:])
    digest = hashlib.sha256(options.encode()).hexdigest()[:8]
    return f"{rest[0]} (options {digest})" if options else rest[0]


def route(text: str) -> str:
    """`eth1`, or `eth1 via 10.0.0.254`. Errors: ValueError."""
    values = fields(text)
    if not values.get("interface"):
        raise ValueError("no interface in it")
    gateway = values.get("gateway")
    return f"{values['interface']} via {gateway}" if gateway else values["interface"]
