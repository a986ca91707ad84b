"""What a campaign file needs to know of its hosts: the addresses of the path between them, their
interfaces, and which levels they cannot have. Changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from netbench.base.control_characters import escape_controls
from netbench.base.errors import EngineError, RequestError
from netbench.engine.catalogue import Named
from netbench.engine.worker import Worker
from netbench.model import Campaign, Host
from netbench.run.check_root import host_levels
from netbench.run.host_facts import read_host
from netbench.run.worker_pool import WorkerPool

T = TypeVar("T")
ADDRESSES = 64  # of a host that are tried
_OF_LINK = {
    "nic_driver": "{}",
    "speed": "{} Mb/s",
    "mtu": "MTU {}",
    "nic_numa_node": "NUMA node {}",
}
_OF_MACHINE = {"cpus_online": "CPUs {} (for `pin`)", "kernel": "kernel {}"}


@dataclass(frozen=True)
class FoundHost:
    """A host as a campaign names it, and what was found there, in words."""

    host: Host
    comments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Impossible:
    """A level of a key that a host cannot have."""

    key: str
    level: str
    host: str
    why: str


def placed(campaign: Campaign, pool: WorkerPool) -> Campaign:
    """The campaign with the addresses of the paths that its first host has to all others. Errors:
    RequestError where there is none; those of reaching a host.
    """
    pool.start_all()
    first, *others = campaign.hosts.values()
    hosts = {first.name: first}
    for other in others:
        if first.local and other.local:
            hosts[other.name] = other
            continue
        near, far = _path(pool.host_worker(first.name), pool.host_worker(other.name))
        hosts[first.name] = replace(first, address=hosts[first.name].address or near)
        hosts[other.name] = replace(other, address=far)
    return replace(campaign, hosts=hosts)


def found_hosts(campaign: Campaign, pool: WorkerPool) -> list[FoundHost]:
    """The hosts of a campaign, with what was read of them."""
    return [
        FoundHost(host, _comments(campaign, pool, name)) for name, host in campaign.hosts.items()
    ]


def impossible(campaign: Campaign, pool: WorkerPool) -> Iterator[Impossible]:
    """Methods, meters and levels of settings that some host cannot have."""
    for pair in campaign.pairs:
        sender, receiver = pool.pair_workers(pair)
        transfers = [cell.transfer for cell in campaign.cells]
        for key, host, names, known in (
            ("send", pair.sender, {t.send for t in transfers}, sender.catalogue.send),
            ("receive", pair.receiver, {t.receive for t in transfers}, receiver.catalogue.receive),
            ("meters", pair.sender, campaign.meters, sender.catalogue.meters),
            ("meters", pair.receiver, campaign.meters, receiver.catalogue.meters),
        ):
            yield from (
                Impossible(key, name, host, why) for name in names if (why := _why(name, known))
            )
    for one in host_levels(campaign, pool):
        if one.why:
            yield Impossible(one.key, one.level.written, one.place.host, one.why)


def _why(name: str, known: Mapping[str, Named]) -> str:
    return known[name].row.why if name in known else "it is not built there"


def _path(near: Worker, far: Worker) -> tuple[str, str]:
    """The address of either end on the best path: without a gateway, then the one whose slower
    interface is the fastest, then one that SSH does not use. Errors: RequestError.
    """
    paths: dict[tuple[str, str], tuple[bool, int, bool]] = {}
    login = _login_address(far)
    for address, interface in _addresses(far).items():
        route = _route(near, address)
        source = str(route.get("prefsrc", ""))
        if not source or "dev" not in route or route.get("type") == "local":
            continue
        back = _route(far, source)
        if back.get("dev") == interface and back.get("type") != "local":
            speed = min(_speed(near, str(route["dev"])), _speed(far, interface))
            paths[source, address] = "gateway" not in route, speed, address != login
    if not paths:
        raise RequestError(
            f"init: no IPv4 path from {near.host} to {far.host} and back was found; write their"
            " `address:` by hand"
        )
    return max(paths, key=paths.__getitem__)


def _login_address(worker: Worker) -> str:
    """The host's own address in the connection of SSH; "" where it is not known."""
    with suppress(EngineError):
        words = worker.operate("exec", ("printenv", "SSH_CONNECTION"))[0].split()
        return words[2] if len(words) == 4 else ""
    return ""


def _addresses(worker: Worker) -> dict[str, str]:
    """The interface of each IPv4 address that other machines may reach. Errors: as _ip."""

    def read(links: Any) -> dict[str, str]:
        found = [
            (str(address["local"]), str(link["ifname"]))
            for link in filter(None, links)
            for address in link["addr_info"]
            if "local" in address
        ]
        return dict(found[:ADDRESSES])  # each is asked for the way to each of the other host's

    return _ip(worker, read, "-4", "address", "show", "up", "scope", "global")


def _route(worker: Worker, address: str) -> dict[str, Any]:
    """The way to an address; {} where there is none. Errors: RequestError as of _ip."""
    with suppress(EngineError):
        return _ip(worker, lambda found: dict(found[0]), "route", "get", address)
    return {}


def _ip(worker: Worker, read: Callable[[Any], dict[str, T]], *words: str) -> dict[str, T]:
    """What `read` makes of ip(8)'s JSON. Errors: EngineError; RequestError when it is no such."""
    text, _ = worker.operate("exec", ("ip", "-json", *words))
    try:
        return read(json.loads(text))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise RequestError(
            f"init: {worker.host}: `ip -json` printed no JSON; install iproute2 there"
        ) from error


def _speed(worker: Worker, interface: str) -> int:
    with suppress(EngineError, ValueError):
        return max(0, int(worker.operate("file", f"/sys/class/net/{interface}/speed")[0]))
    return 0


def _comments(campaign: Campaign, pool: WorkerPool, name: str) -> tuple[str, ...]:
    """What was read of a host: its interface, its CPUs."""
    facts = read_host(campaign, pool, name).facts
    lines = [
        f"interface {facts.get('interface') or 'unknown'}: {_listed(facts, _OF_LINK)}",
        _listed(facts, _OF_MACHINE),
    ]
    return tuple(escape_controls(" ".join(line.split())) for line in lines)


def _listed(facts: Mapping[str, object], words: Mapping[str, str]) -> str:
    """Those facts that are known, each in its words."""
    known = {name: facts[name] for name in words if facts.get(name)}
    return ", ".join(words[name].format(value) for name, value in known.items())
