"""Making, removing and listing labs of any kind, and the lab that a campaign makes for itself."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from netbench.base.errors import LabRefused, RequestError
from netbench.lab import command, sshd, state
from netbench.lab.guest_console import console
from netbench.lab.lab import Kind, Lab, LabHost, LabSpec
from netbench.lab.netns import NETNS
from netbench.lab.qemu import QEMU
from netbench.lab.state import host_names, lab_name
from netbench.lab.teardown import remove
from netbench.model import BootSpec, Campaign, Host, Kernel

OWN = "run"  # a campaign's own lab is named so, with the process id
ANSWER_SECONDS = 3.0  # an emulated guest that measures answers within one
ANSWERS, UNRESPONSIVE, GONE = "answers", "unresponsive", "gone"
KINDS: dict[str, Kind] = {"netns": NETNS, "qemu": QEMU}

_begun: set[str] = set()  # the names of labs that this process has made


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
    names = host_names(hosts)
    spec = LabSpec(kind, lab_name(name), names, rate, delay, tuple(kernels), disk)
    _check_spec(spec)
    maker = KINDS[kind]
    _need_root("making a lab")
    if maker.prepare:
        _refuse_second(spec.name)
        spec = maker.prepare(spec, command.find(maker.needs(spec)))
    with state.locked() as lock:
        tools = command.find(maker.needs(spec), lock)
        _refuse_second(spec.name)
        folder = state.begin(spec.name)
        _begun.add(spec.name)
        try:
            lab = maker.make(spec, folder, tools)
            state.write(lab)
        except BaseException:
            remove(spec.name, tools)
            raise
    return lab


def require_lab(campaign: Campaign) -> None:
    """What a campaign's lab needs is told before kernels are built for it. Errors: LabRefused."""
    if campaign.lab is None:
        return
    _need_root("making a lab")
    spec = LabSpec(campaign.lab.kind, own_name(), tuple(campaign.hosts), None, None)
    command.find(KINDS[spec.kind].needs(spec))


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
        yield campaign._replace(hosts=hosts)
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
    labs = [] if name is None else [lab_name(name)]
    _need_root("removing a lab")
    with state.locked() as lock:
        tools = command.find(("ip",), lock)
        return [line for one in labs or unused() for line in remove(one, tools)]


def unused() -> list[str]:
    """The labs that no running campaign made, by name."""
    return [name for name in state.names() if not _campaign_process(name) or _is_orphaned(name)]


def status() -> list[dict[str, str]]:
    """Every lab of which anything exists, by name: a row a host, or one row where there is no host
    yet, as `lab status --json` prints them. All hosts are asked at the same time, for 3 s at most.

    The state of a lab is `up` (all hosts answer), `unresponsive` (a host does not answer), `broken`
    (a namespace or server is missing), or `unfinished` (being made, or the process that made it
    died). That of a `server`, the process of a guest's being QEMU: it answers; it runs, and does
    not answer (`unresponsive`): it is stopped, or the kernel boots, hangs or has panicked; it is
    `gone`.
    """
    labs = {name: state.read(name) for name in state.names()}
    hosts = [(lab, host) for lab in labs.values() if lab for host in lab.hosts.values()]
    with ThreadPoolExecutor(len(hosts) or 1) as pool:
        rows = list(pool.map(lambda one: _host_row(*one), hosts))
    return [
        _lab_row(name, lab, own) | row
        for name, lab in labs.items()
        for own in ([row for row in rows if row["lab"] == name],)
        for row in own or ({},)
    ]


def _lab_row(name: str, lab: Lab | None, hosts: Sequence[Mapping[str, str]]) -> dict[str, str]:
    row = {"lab": name, "kind": "", "state": "unfinished", "folder": str(state.folder(name))}
    if lab is None:
        return row
    servers, spaces = {host["server"] for host in hosts}, state.namespaces(name)
    word = UNRESPONSIVE if servers != {ANSWERS} else "up"
    if GONE in servers or not {host.namespace for host in lab.hosts.values()} <= set(spaces):
        word = "broken"
    row |= {"kind": lab.kind, "state": word}
    return row | ({"accelerator": lab.accelerator.fact} if lab.kind == "qemu" else {})


def _host_row(lab: Lab, host: LabHost) -> dict[str, str]:
    server = _server(lab, host)
    row = {"lab": lab.name, "host": host.name, "address": host.address}
    row |= {"interface": host.interface, "server": server}
    lines = console(lab, host.name, 1) if server != ANSWERS else []
    return row | ({"console": lines[0]} if lines else {})


def _server(lab: Lab, host: LabHost) -> str:
    if not sshd.servers(lab.folder, host.name):
        return GONE
    return ANSWERS if sshd.answers(host.management, ANSWER_SECONDS) else UNRESPONSIVE


def _check_spec(spec: LabSpec) -> None:
    """Refuse what no lab can be. Errors: LabRefused."""
    if spec.kind not in KINDS:
        raise LabRefused(f"expected a kind of lab ({', '.join(KINDS)}), got {spec.kind!r}")
    for key, value in (("rate", spec.rate), ("delay", spec.delay)):
        if value is not None and value <= 0:
            raise LabRefused(f"expected a {key} above 0, got {value}")
    if _campaign_process(spec.name) and spec.name != own_name():
        raise LabRefused(
            f"the name {spec.name!r} is reserved for the labs of campaigns ({OWN} and a number);"
            " choose another name"
        )
    if spec.kind != "qemu" and (spec.kernels or spec.disk):
        raise LabRefused(
            f"a lab of kind {spec.kind} uses this machine's kernel and files; --kernels and --disk"
            " need a lab of kind qemu"
        )
    for twice, number in Counter(kernel.name for kernel in spec.kernels).items():
        if number > 1:
            raise LabRefused(f"expected each kernel once, got {twice} again")


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
    orphaned = [name for name in state.names() if _is_orphaned(name)]
    return [line for name in orphaned for line in down(name)]


def _is_orphaned(name: str) -> bool:
    """Whether a lab is a campaign's whose process has ended, though this one may have its number,
    as in a container started again.
    """
    process = _campaign_process(name)
    another = name == own_name() and name not in _begun
    return bool(process) and (another or not os.path.exists(f"/proc/{process}"))


def _campaign_process(name: str) -> str:
    """The process of the campaign that a lab belongs to; "" for other labs."""
    pid = name.removeprefix(OWN)
    return pid if name.startswith(OWN) and pid.isdecimal() else ""
