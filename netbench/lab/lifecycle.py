"""Making, removing and listing labs of any kind, and the lab that a campaign makes for itself."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from netbench.base.errors import LabRefused, RequestError
from netbench.lab import command, sshd, state
from netbench.lab.guest_console import console
from netbench.lab.lab import (
    ANSWERS,
    GONE,
    STOPPED,
    UNRESPONSIVE,
    HostStatus,
    Kind,
    Lab,
    LabHost,
    LabSpec,
    LabStatus,
)
from netbench.lab.netns import NETNS
from netbench.lab.qemu import QEMU
from netbench.lab.state import host_names, lab_name
from netbench.lab.teardown import remove
from netbench.model import BootSpec, Campaign, Host, Kernel

OWN = "run"  # a campaign's own lab is named so, with the process id
ANSWER_SECONDS = 3.0  # an emulated guest that measures answers within one
_STOPPED_STATES = ("T", "t")  # proc(5): by a signal, or by a debugger
KINDS: dict[str, Kind] = {"netns": NETNS, "qemu": QEMU}


def up(
    kind: str,
    hosts: Sequence[str] | int,
    *,
    rate: int | None = None,
    delay: int | None = None,
    name: str | None = None,
    kernels: Sequence[Kernel] = (),
    disk: bool = False,
) -> Lab:
    """Make hosts on this machine and wait until all of them accept a login.

    `hosts` are their names or their number (then h1, h2, ...); `rate` (bits/s) and `delay` (ns)
    apply to the data link, each way. `kernels` are those of guests, which start on the first (by
    default the newest of this machine's Debian); a release means Debian's cloud kernel. With
    `disk`, each guest has a /boot that survives its boots, with those kernels in it. The lab stays
    until `down`. Errors: LabRefused when it is impossible here (nothing is left behind),
    RequestError about a kernel's files, LabError when making it failed.
    """
    spec = _spec_of(kind, hosts, rate, delay, name)
    spec = _with_kernels(spec, kernels, disk)
    maker = KINDS[kind]
    _need_root("making a lab")
    if maker.prepare:
        _refuse_second(spec.name)
        spec = maker.prepare(spec, command.find(maker.needs(spec)))
    with state.locked() as lock:
        tools = command.find(maker.needs(spec), lock)
        _refuse_second(spec.name)
        folder = state.begin(spec.name)
        try:
            lab = maker.make(spec, folder, tools)
            state.write(lab)
        except BaseException:
            remove(spec.name, tools)
            raise
    return lab


def require_lab(campaign: Campaign) -> None:
    """What a campaign's lab needs is told before kernels are built for it. Errors: LabRefused,
    LabError.
    """
    if campaign.lab is None:
        return
    _need_root("making a lab")
    kind, hosts = campaign.lab.kind, list(campaign.hosts)
    maker = KINDS[kind]
    tools = command.find(maker.needs(_spec_of(kind, hosts, None, None, own_name())))
    if maker.require:
        maker.require(tools)


@contextmanager
def campaign_hosts(campaign: Campaign) -> Iterator[Campaign]:
    """The campaign with the hosts of its lab, which is up as long as the context; a campaign
    without a lab as it is. Errors: LabError, RequestError.
    """
    if campaign.lab is None:
        yield campaign
        return
    spec, kernels = campaign.lab, campaign.builds
    reap()
    if spec.kind != "qemu" and (kernels or campaign.repeat.boots > 1):
        raise RequestError(
            f"lab: {spec.kind} uses this machine's kernel, which netbench does not boot; use lab:"
            " qemu"
        )
    lab = up(
        spec.kind,
        list(campaign.hosts),
        rate=spec.rate,
        delay=spec.delay,
        name=own_name(),
        kernels=kernels,
    )
    try:
        hosts = {name: _host(host, lab, campaign) for name, host in lab.hosts.items()}
        yield replace(campaign, hosts=hosts)
    finally:
        down(lab.name)


def _host(host: LabHost, lab: Lab, campaign: Campaign) -> Host:
    ip6 = bool(campaign.cells) and campaign.cells[0].transfer.ip == 6
    boot, named = BootSpec(), campaign.hosts[host.name]
    if lab.kind == "qemu":
        boot = BootSpec("qemu", lab.name, deadline=named.boot.deadline)
    address = host.address6 if ip6 else host.address
    config = str(lab.ssh_config)
    return Host(host.name, host.ssh, address, host.interface, config, boot, named.run_as)


def down(name: str | None = None) -> list[str]:
    """Remove a lab, or all labs except those of running campaigns: processes, interfaces,
    namespaces and files, also what a killed `up` left.

    Returns a line for each thing that was removed; nothing to remove is no error. Errors:
    LabRefused, LabError.
    """
    wanted = [] if name is None else [lab_name(name)]
    _need_root("removing a lab")
    with state.locked() as lock:
        tools = command.find(("ip",), lock)
        return [line for one in wanted or unused() for line in remove(one, tools)]


def unused() -> list[str]:
    """The labs that no running campaign made, by name."""
    return [
        name
        for name in state.names()
        if not (process := _campaign_process(name)) or not os.path.exists(f"/proc/{process}")
    ]


def status() -> tuple[LabStatus, ...]:
    """Every lab of which anything exists, by name. All hosts are asked at the same time, for 3 s
    at most.
    """
    labs = {name: state.read(name) for name in state.names()}
    hosts = [(lab, host) for lab in labs.values() if lab for host in lab.hosts.values()]
    with ThreadPoolExecutor(len(hosts) or 1) as pool:
        known = list(pool.map(lambda one: _host_status(*one), hosts))
    answers = iter(known)
    return tuple(
        _status(name, lab, tuple(itertools.islice(answers, len(lab.hosts) if lab else 0)))
        for name, lab in labs.items()
    )


def _host_status(lab: Lab, host: LabHost) -> HostStatus:
    server = _server_state(next(iter(sshd.servers(lab.folder, host.name)), None), host)
    lines = console(lab, host.name, 1) if server != ANSWERS else []
    there = host.namespace in state.namespaces(lab.name)
    return HostStatus(host, there, server, "".join(lines))


def _server_state(pid: int | None, host: LabHost) -> str:
    """The state of a host's server, whose process (of a guest: its QEMU) is `pid`, if it is there:
    a guest whose QEMU runs may have panicked, hung or been stopped.
    """
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() if pid else []
    except OSError:
        words = []
    if not words:
        return GONE
    if words[0] in _STOPPED_STATES:
        return STOPPED
    return ANSWERS if sshd.answers(host.management, ANSWER_SECONDS) else UNRESPONSIVE


def _status(name: str, lab: Lab | None, hosts: tuple[HostStatus, ...]) -> LabStatus:
    folder, spaces = state.folder(name), tuple(state.namespaces(name))
    if lab is None:
        return LabStatus(name, "", "unfinished", folder, (), spaces)
    word = "up"
    if not all(host.namespace and host.server != GONE for host in hosts):
        word = "broken"
    elif any(host.server != ANSWERS for host in hosts):
        word = UNRESPONSIVE
    accelerator = lab.accelerator.fact if lab.kind == "qemu" else ""
    return LabStatus(name, lab.kind, word, folder, hosts, spaces, accelerator)


def _spec_of(
    kind: str, hosts: Sequence[str] | int, rate: int | None, delay: int | None, name: str | None
) -> LabSpec:
    if kind not in KINDS:
        raise LabRefused(f"expected a kind of lab ({', '.join(KINDS)}), got {kind!r}")
    for key, value in (("rate", rate), ("delay", delay)):
        if value is not None and value <= 0:
            raise LabRefused(f"expected a {key} above 0, got {value}")
    if name and _campaign_process(name) and name != own_name():
        raise LabRefused(
            f"the name {name!r} is reserved for the labs of campaigns ({OWN} and a number); choose"
            " another name"
        )
    return LabSpec(kind, lab_name(name), host_names(hosts), rate, delay)


def _with_kernels(spec: LabSpec, kernels: Sequence[Kernel], disk: bool) -> LabSpec:
    if spec.kind != "qemu" and (kernels or disk):
        raise LabRefused(
            f"a lab of kind {spec.kind} uses this machine's kernel and files; --kernels and --disk"
            " need a lab of kind qemu"
        )
    names = [kernel.name for kernel in kernels]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise LabRefused(f"expected each kernel once, got {twice} again")
    return replace(spec, kernels=tuple(kernels), disk=disk)


def _need_root(what: str) -> None:
    if os.geteuid() != 0:
        raise LabRefused(
            f"{what} needs root, and this is user {os.geteuid()}; run it as root, for example with"
            " sudo"
        )


def _refuse_second(name: str) -> None:
    if state.read(name) is not None:
        raise LabRefused(f"lab {name} is already up; run `lab down` first, or choose another name")
    if state.folder(name).exists() or state.namespaces(name):
        raise LabRefused(
            f"lab {name} is incomplete, because its `lab up` did not finish; run `lab down`"
        )


def own_name() -> str:
    """The name of the lab that this process makes for a campaign."""
    return f"{OWN}{os.getpid()}"


def reap() -> list[str]:
    """Remove the labs of campaigns whose process has ended. Errors: LabRefused, LabError."""
    orphaned = [
        name
        for name in state.names()
        if _campaign_process(name) and not os.path.exists(f"/proc/{_campaign_process(name)}")
    ]
    return [line for name in orphaned for line in down(name)]


def _campaign_process(name: str) -> str:
    """The process of the campaign that a lab belongs to; "" for other labs."""
    pid = name.removeprefix(OWN)
    return pid if name.startswith(OWN) and pid.isdecimal() else ""
