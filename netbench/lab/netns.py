"""Hosts that are network namespaces: a management link to this machine, and a data link of veth
apart from it.

    root namespace            nb-LAB-switch                        nb-LAB-HOST
    nb-LAB  ----------------  uplink [bridge mgmt] mgmt1 --------  mgmt0   SSH
                                     [bridge data] data1 --------  data0   data, unless two hosts
                                     without rate and delay:
                                                                           then their data0 are the
                                                                           two ends of one veth

A rate or a delay is on the switch's ports, towards each host, so that a host's own qdisc is the
campaign's to set.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from netbench.base.errors import LabError, LabRefused
from netbench.lab import sshd
from netbench.lab.command import Tools, together
from netbench.lab.lab import Kind, Lab, LabHost, LabSpec
from netbench.lab.state import SWITCH, interface_name, namespace_name

DATA = "data0"
MANAGEMENT = "mgmt0"
# RFC 2544's range for benchmarks first: no host has an address there.
POOLS = tuple(
    map(IPv4Network, ("198.18.0.0/15", "10.213.0.0/16", "100.117.0.0/16", "172.30.0.0/16"))
)
_DATA4, _DATA6 = "10.77.0.{}", "fd77::{:x}"
_GATEWAY = 254  # this machine's end of the management link
_SPLIT_DEFAULT = 7  # VPNs write a default route as 0.0.0.0/1 and 128.0.0.0/1
_NETEM_LIMIT = 100_000
_TBF_SECONDS = 0.025


def _needs(spec: LabSpec) -> Sequence[str]:
    return ("ip", "sshd", "ssh-keygen", *shaping(spec))


def shaping(spec: LabSpec) -> Sequence[str]:
    """The programs that the spec's rate and delay need."""
    return ("tc",) if _shaped(spec) else ()


def make(spec: LabSpec, folder: Path, tools: Tools) -> Lab:
    """Make the namespaces, their links and their SSH servers. Errors: LabError; `remove` then
    deletes what was made.
    """
    network = management_network(networks_in_use(tools))
    hosts = lab_hosts(spec, network, has_ipv6())
    config = sshd.prepare(folder, hosts.values(), tools)
    _links(spec, list(hosts.values()), network, tools)
    sshd.start(folder, hosts.values(), tools)
    return Lab(spec.name, spec.kind, folder, hosts, config)


NETNS = Kind(_needs, make)


def lab_hosts(
    spec: LabSpec, network: IPv4Network, ipv6: bool, space: str = ""
) -> dict[str, LabHost]:
    """The hosts of a lab, each in a namespace of its own, or all in `space`."""
    return {
        name: LabHost(
            name=name,
            ssh=f"{spec.name}-{name}",
            address=_DATA4.format(number),
            address6=_DATA6.format(number) if ipv6 else "",
            interface=DATA,
            namespace=space or namespace_name(spec.name, name),
            management=str(network[number]),
        )
        for number, name in enumerate(spec.hosts, 1)
    }


def networks_in_use(tools: Tools) -> list[IPv4Network]:
    """The IPv4 networks that this machine routes, or has an address in. Errors: LabError."""
    routes = _json(tools, "route", "show", "table", "all")
    links = _json(tools, "address", "show")
    words = [route["dst"] for route in routes if route["dst"] != "default"]
    words += [f"{a['local']}/{a['prefixlen']}" for link in links for a in link.get("addr_info", ())]
    return [IPv4Network(word, strict=False) for word in words]


def _json(tools: Tools, *words: str) -> list[dict[str, Any]]:
    known: list[dict[str, Any]] = json.loads(tools.run(("ip", "-json", "-4", *words)) or "[]")
    return known


def management_network(used: Iterable[IPv4Network]) -> IPv4Network:
    """A /24 that overlaps with none of the networks in use. Errors: LabError."""
    real = [network for network in used if network.prefixlen > _SPLIT_DEFAULT]
    for pool in POOLS:
        for network in pool.subnets(new_prefix=24):
            if not any(network.overlaps(other) for other in real):
                return network
    raise LabError(
        f"no /24 is free for the management link in {', '.join(map(str, POOLS))}; see `ip route"
        " show table all`"
    )


def has_ipv6() -> bool:
    try:
        return Path("/sys/module/ipv6/parameters/disable_ipv6").read_text().strip() == "0"
    except OSError:
        return False


def _links(spec: LabSpec, hosts: list[LabHost], network: IPv4Network, tools: Tools) -> None:
    switch = namespace_name(spec.name, SWITCH)
    direct = len(hosts) == 2 and not _shaped(spec)
    tools.batch(
        ("ip",), ["netns add " + space for space in (switch, *(host.namespace for host in hosts))]
    )
    tools.batch(("ip",), _cables(switch, hosts, direct))
    connect(spec, network, tools, direct)
    ipv6 = has_ipv6()
    together(
        lambda host: tools.batch(("ip", "-n", host.namespace), _ends(host, network, ipv6)), hosts
    )


def connect(spec: LabSpec, network: IPv4Network, tools: Tools, direct: bool = False) -> None:
    """Join the ports of all hosts, which are in the switch's namespace, to its two bridges, and
    this machine to that of management. With `direct` there are no ports for data. Errors: LabError.
    """
    switch, ipv6 = namespace_name(spec.name, SWITCH), has_ipv6()
    own = interface_name(spec.name)
    tools.batch(("ip",), [f"link add {own} type veth peer name uplink netns {switch}"])
    if ipv6:
        _refuse_routers(own)
    tools.batch(("ip", "-n", switch), _bridges(len(spec.hosts), direct, ipv6))
    _shape_ports(spec, switch, tools)
    tools.batch(("ip",), configure(own, f"{network[_GATEWAY]}/{network.prefixlen}", ipv6=False))


def _refuse_routers(interface: str) -> None:
    """No IPv6 here: a guest that calls itself a router would get this machine's default route.
    Errors: LabError.
    """
    file = Path("/proc/sys/net/ipv6/conf", interface, "disable_ipv6")
    try:
        file.write_text("1\n")
    except OSError as error:
        raise LabError(
            f"cannot write {file}: {error.strerror}; labs need a writable /proc"
        ) from error


def _cables(switch: str, hosts: Sequence[LabHost], direct: bool) -> Iterator[str]:
    """Every veth, made where its ends belong, so that nothing passes through the root namespace."""
    for i, host in enumerate(hosts, 1):
        yield _veth(MANAGEMENT, host.namespace, f"mgmt{i}", switch)
        if not direct:
            yield _veth(DATA, host.namespace, f"data{i}", switch)
    if direct:
        yield _veth(DATA, hosts[0].namespace, DATA, hosts[1].namespace)


def _veth(name: str, space: str, peer: str, other: str) -> str:
    return f"link add {name} netns {space} type veth peer name {peer} netns {other}"


def _bridges(hosts: int, direct: bool, ipv6: bool) -> Iterator[str]:
    ports = {"mgmt": ["uplink", *(f"mgmt{i}" for i in range(1, hosts + 1))]}
    if not direct:
        ports["data"] = [f"data{i}" for i in range(1, hosts + 1)]
    for bridge, members in ports.items():
        yield f"link add {bridge} type bridge stp_state 0 mcast_snooping 0"
        yield from configure(bridge, "", ipv6)
        for port in members:
            yield f"link set {port} master {bridge}"
            yield from configure(port, "", ipv6)


def _ends(host: LabHost, network: IPv4Network, ipv6: bool) -> Iterator[str]:
    yield "link set lo up"
    yield from configure(MANAGEMENT, f"{host.management}/{network.prefixlen}", ipv6)
    yield from configure(DATA, f"{host.address}/24", ipv6)
    if host.address6:
        yield f"address add {host.address6}/64 dev {DATA} nodad"


def configure(interface: str, address: str, ipv6: bool) -> Iterator[str]:
    """Set the interface's address and no link-local one, so that IPv6 sends no packets of its own
    over a measured link.
    """
    if ipv6:
        yield f"link set {interface} addrgenmode none"
    if address:
        yield f"address add {address} dev {interface}"
    yield f"link set {interface} up"


def shape(spec: LabSpec) -> str:
    """The qdisc, in tc's words, that holds a data link to its rate (bits/s) and delay (ns):
    tc-tbf(8), tc-netem(8).
    """
    if spec.delay is not None:
        rate = f" rate {spec.rate}bit" if spec.rate is not None else ""
        return f"netem delay {spec.delay}ns{rate} limit {_NETEM_LIMIT}"
    bytes_a_second = (spec.rate or 0) / 8
    burst = max(65536, int(bytes_a_second / 1000))
    return (
        f"tbf rate {spec.rate}bit burst {burst}b limit"
        f" {burst + max(65536, int(bytes_a_second * _TBF_SECONDS))}b"
    )


def _shape_ports(spec: LabSpec, switch: str, tools: Tools) -> None:
    """Hold the switch's ports to the spec's rate and delay, if it has any. Errors: LabRefused."""
    if not _shaped(spec):
        return
    qdisc, *_ = shape(spec).split()
    for number in range(1, len(spec.hosts) + 1):
        words = ("tc", "-n", switch, "qdisc", "add", "dev", f"data{number}", "root")
        done = tools.attempt((*words, *shape(spec).split()))
        if done.returncode:
            raise LabRefused(
                f"rate and delay: this kernel has no {qdisc} qdisc (tc:"
                f" {' '.join(done.stderr.split())}); leave them out, or load sch_{qdisc}"
            )


def _shaped(spec: LabSpec) -> bool:
    return spec.rate is not None or spec.delay is not None
