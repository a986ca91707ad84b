"""What a campaign holds on its hosts by itself, where it has root there: TCP's metrics are dropped,
so that no run begins with what the runs before it have learnt of its peer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from netbench.model import Campaign, SettingLevel
from netbench.settings.files import Sysctl
from netbench.settings.named import side_of
from netbench.settings.tcp_metrics import NO_SAVE, TcpMetrics

OWN: Mapping[str, SettingLevel] = MappingProxyType({TcpMetrics.name: SettingLevel("drop", "drop")})
NO_ROOT = "the login is not root, and nothing else of the campaign needs root"


def own_settings(campaign: Campaign, host: str) -> Mapping[str, SettingLevel]:
    """What is held on a host; nothing where the campaign itself says what TCP keeps there."""
    return {} if any(map(_is_tcp_metrics, _names(campaign, host))) else OWN


def _names(campaign: Campaign, host: str) -> Iterator[str]:
    """Settings that the campaign gives a host in some cell."""
    sides = {""} | {
        side
        for pair in campaign.pairs
        for side, name in (("sender", pair.sender), ("receiver", pair.receiver))
        if name == host
    }
    for levels in (campaign.settings, *(cell.settings for cell in campaign.cells)):
        for side, name in map(side_of, levels):
            if side in sides:
                yield name


def _is_tcp_metrics(name: str) -> bool:
    family, _, what = name.partition(".")
    return name in OWN or (f"{family}." == Sysctl.name and Sysctl().path(what) == NO_SAVE)
