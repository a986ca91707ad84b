"""What a campaign holds on its hosts by itself, where it has root there: TCP's metrics are dropped,
so that no run begins with what the runs before it have learnt of its peer.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from netbench.engine.worker import Worker
from netbench.model import Campaign, SettingLevel
from netbench.settings.files import NO_SAVE, Sysctl, TcpMetrics
from netbench.settings.named import side_of
from netbench.settings.setting import Peers, SettingContext

OWN: Mapping[str, SettingLevel] = MappingProxyType({TcpMetrics.name: SettingLevel("drop", "drop")})
NO_ROOT = "the login is not root, and nothing else of the campaign needs root"


def own_settings(campaign: Campaign, host: str) -> Mapping[str, SettingLevel]:
    """What is held on a host; nothing where the campaign itself says what TCP keeps there."""
    sides = {""} | {
        side
        for pair in campaign.pairs
        for side, name in (("sender", pair.sender), ("receiver", pair.receiver))
        if name == host
    }
    for levels in (campaign.settings, *(cell.settings for cell in campaign.cells)):
        for side, name in map(side_of, levels):
            family, _, what = name.partition(".")
            saves = f"{family}." == Sysctl.name and Sysctl().path(what) == NO_SAVE
            if side in sides and (name in OWN or saves):
                return {}
    return OWN


def context_of(campaign: Campaign, host: str, worker: Worker) -> SettingContext:
    """Where a host's settings are made, and what it has to do with the campaign's other hosts."""
    ip = campaign.ip
    files = [
        cell.transfer.source.path for cell in campaign.cells if cell.transfer.source.kind == "file"
    ]
    hosts = campaign.hosts
    receivers = [
        hosts[pair.receiver].data_address(ip) for pair in campaign.pairs if pair.sender == host
    ]
    senders = [
        hosts[pair.sender].data_address(ip) for pair in campaign.pairs if pair.receiver == host
    ]
    peers = Peers(*(tuple(dict.fromkeys(names)) for names in (files, receivers, senders)))
    return SettingContext(host, worker, hosts[host].data_address(ip), hosts[host].interface, peers)
