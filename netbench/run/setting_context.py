"""Where the settings of a campaign's host are made."""

from __future__ import annotations

from netbench.engine.worker import Worker
from netbench.model import Campaign
from netbench.settings.setting import Peers, SettingContext


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
