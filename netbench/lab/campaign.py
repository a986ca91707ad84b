"""The hosts of a campaign that makes its own lab."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from netbench.base.errors import RequestError
from netbench.lab.lab import Lab, LabHost
from netbench.lab.lifecycle import down, own_name, reap, require, up
from netbench.model import BootSpec, Campaign, Host


def require_lab(campaign: Campaign) -> None:
    """What its lab needs is told before kernels are built for it. Errors: LabRefused, LabError."""
    if campaign.lab is not None:
        require(campaign.lab.kind, list(campaign.hosts))


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
