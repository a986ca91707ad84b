"""The whole campaign file as one pydantic model, made for what an engine offers."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

from pydantic import create_model

from netbench.base.names import CAMPAIGN_MAX, name_pattern
from netbench.campaign.messages import expected
from netbench.campaign.schema import kinds
from netbench.campaign.schema.hosts import HOSTS, LAB
from netbench.campaign.schema.kernels import KERNELS
from netbench.campaign.schema.keys import Keys, optional, required
from netbench.campaign.schema.kinds import Kind, list_of, mapping_of
from netbench.campaign.schema.pairs import GROUPS, LINKS, PAIRS
from netbench.campaign.schema.statistics import (
    OVERLAPPING,
    CompareKeys,
    OrderKeys,
    ProfileKeys,
    RepeatKeys,
    SoakKeys,
)
from netbench.campaign.schema.tools import OWN_TOOLS
from netbench.campaign.schema.transfer import TransferKeys, transfer_model
from netbench.campaign.tree import Plain
from netbench.engine.catalogue import Catalogue, Row
from netbench.model import Lab


def _version(value: Plain) -> int:
    if value == "1":
        return 1
    raise expected("netbench: 1, the version of the file's format", value)


_NAME = kinds.matching(
    f"a name of at most {CAMPAIGN_MAX} letters, digits, dots, dashes and underscores, such as"
    " sosend-2",
    name_pattern(CAMPAIGN_MAX),
)
_LEVELS = dict[str, Annotated[str, kinds.level()]]
_ANY = Kind(lambda value: value, {})
_ENTRY = Annotated[dict[str, Annotated[Any, _ANY]], mapping_of("a mapping of keys and levels")]
_ENTRIES = Annotated[list[_ENTRY], list_of("a list of mappings", empty=True)]


class CommandKeys(Keys):
    """A setting of the campaign's own, as commands."""

    apply: Annotated[tuple[str, ...], kinds.argv()] = required(
        "the program that sets {level}", ["tc-shape", "{level}"]
    )
    read: Annotated[tuple[str, ...], kinds.argv()] = required(
        "the program that prints the level", ["tc-shape", "--show"]
    )
    undo: Annotated[tuple[str, ...], kinds.argv()] = required(
        "the program that puts back {level}, the one that was read", ["tc-shape", "{level}"]
    )


def _transfer(default: TransferKeys) -> Any:
    example = {"send": "sendfile", "source": {"file": "/srv/image.iso"}}
    return optional(
        "one level of each key of a transfer; a sweep has several", example, default=default
    )


def _meters() -> Any:
    return optional("what accounts CPU time", ["rusage"], default=["rusage", "procstat"])


class FileKeys(Keys):
    """Base of the model of the whole file; the model itself is made from a catalogue."""

    netbench: Annotated[int, Kind(_version, {"enum": [1, "1"]})] = required(
        "1, the version of the file's format", 1
    )
    name: Annotated[str, _NAME] = required(
        "a word that names the campaign and its results", "sosend-2"
    )
    about: Annotated[str, kinds.text("a text")] = optional(
        "what the campaign asks, in a sentence", "Is the new sosend cheaper?", default=""
    )
    hosts: Annotated[HOSTS, mapping_of("a mapping of hosts such as {here: local}")] = optional(
        "machines by name, several by a notation such as `node[01-64,70]`, or `from: FILE`, an"
        " inventory; left out: one host, `here: local`; with `lab`: `snd` and `rcv`",
        {"snd": {"ssh": "root@snd.example"}, "rcv": "local"},
        default={},
    )
    ssh_config: Annotated[str | None, kinds.text("a path")] = optional(
        "a file of OpenSSH's configuration for the hosts, in place of ~/.ssh/config", "./ssh_config"
    )
    lab: Annotated[Lab | None, LAB] = optional(
        "makes the hosts on this machine, by the names in `hosts`, which may be as short as"
        " {a: {}, b: {}}: `ssh`, `address` and `interface` are not used then",
        "netns",
    )
    groups: Annotated[GROUPS, mapping_of("a mapping of groups such as {rack1: [a, b]}")] = optional(
        "hosts by the name of a group, which may stand wherever a host may; `all` are all hosts",
        {"rack1": ["node[01-32]"]},
        default={},
    )
    pairs: Annotated[list[Any], PAIRS] = optional(
        "which hosts transfer to which: one of these words or mappings, or a list of them; left"
        " out: the first two hosts, or the only one with itself",
        [{"sender": "snd", "receiver": "rcv"}],
        default=[],
    )
    links: Annotated[LINKS, mapping_of("a mapping of links such as {uplink1: [a, b]}")] = optional(
        "parts of the network that pairs share, by name, each with the hosts on one side of it",
        {"uplink1": {"hosts": "rack1", "capacity": 4}},
        default={},
    )
    overlap: Annotated[str, OVERLAPPING] = optional(
        "which pairs run side by side: round, those of one round, in which no host, kernel or link"
        " is used twice; none, one pair at a time; kernel, as round, but pairs may share a kernel",
        "none",
        default="round",
    )
    verify: Annotated[bool, kinds.switch()] = optional(
        "check once per cell that what was sent arrives", "off", default="on"
    )
    settings: Annotated[_LEVELS, mapping_of("a mapping of settings such as {mtu: 9000}")] = (
        optional("settings held for the whole campaign", {"mtu": 9000}, default={})
    )
    sweep: Annotated[dict[str, Any], mapping_of("a mapping of keys and their levels")] = optional(
        "factors, crossed", {"send": ["write", "sendfile"], "tso": ["on", "off"]}, default={}
    )
    include: _ENTRIES = optional(
        "cells to extend or to add, as in a GitHub Actions matrix",
        [{"send": "sendfile", "chunk": "1M"}],
        default=[],
    )
    exclude: _ENTRIES = optional(
        "combinations to leave out, as in a GitHub Actions matrix",
        [{"send": "write", "tso": "off"}],
        default=[],
    )
    kernels: Annotated[KERNELS, mapping_of("a mapping of kernels")] = optional(
        "kernels by name", {"patched": {"tree": "~/src/linux"}}, default={}
    )
    command: Annotated[dict[str, CommandKeys], mapping_of("a mapping of commands")] = optional(
        "settings of the campaign's own, by name",
        {
            "shape": {
                "apply": ["tc-shape", "{level}"],
                "read": ["tc-shape", "--show"],
                "undo": ["tc-shape", "{level}"],
            }
        },
        default={},
    )
    tools: OWN_TOOLS = optional(
        "programs as cells, by name: `tool: NAME`",
        {
            "mine": {
                "client": ["mytool", "{address}", "{port}"],
                "server": ["mytool", "--listen", "{port}"],
                "captures": {"throughput": "rate=(?P<rate>.*)"},
            }
        },
        default={},
    )
    repeat: RepeatKeys = optional("when a cell closes", {"max": 50}, default=RepeatKeys())
    order: OrderKeys = optional("the order of runs", {"seed": 7}, default=OrderKeys())
    profile: Annotated[
        ProfileKeys | None, mapping_of("a mapping such as {cells: changed, seconds: 5}")
    ] = optional("profiles of some cells", {"cells": "changed", "seconds": 5})
    compare: Annotated[
        CompareKeys | None, mapping_of("a mapping such as {factor: send, baseline: write}")
    ] = optional("levels that are compared", {"factor": "send", "baseline": "write"})
    soak: Annotated[SoakKeys, mapping_of("a mapping such as {footprint: 64K}")] = optional(
        "how the meter soak works", {"footprint": "64K"}, default=SoakKeys()
    )
    limit: Annotated[int | None, kinds.time(1)] = optional(
        "longest time that the campaign may take, after a pilot of `duration: auto`", "2h"
    )
    transfer: TransferKeys = _transfer(TransferKeys())
    meters: list[str] = _meters()

    @classmethod
    def nearest_key(cls, key: str) -> str:
        """A key of transfer that was written a level too high is told with its path."""
        below = cls.model_fields["transfer"].annotation
        if (
            isinstance(below, type)
            and issubclass(below, TransferKeys)
            and key in below.model_fields
        ):
            return f"transfer.{key}"
        return super().nearest_key(key)


@lru_cache(maxsize=8)
def _model(rows: tuple[Row, ...]) -> type[FileKeys]:
    catalogue = Catalogue.of(rows)
    transfer = transfer_model(catalogue)
    meter = kinds.choice("a meter", list(catalogue.meters))
    meters = Annotated[
        list[Annotated[str, meter]],
        list_of("a list of meters such as [rusage, procstat]", empty=True),
    ]
    fields: dict[str, Any] = {
        "transfer": (transfer, _transfer(transfer())),
        "meters": (meters, _meters()),
    }
    return create_model("Campaign", __base__=FileKeys, **fields)


def file_model(catalogue: Catalogue) -> type[FileKeys]:
    """The pydantic model of a campaign file for what an engine offers."""
    return _model(catalogue.rows)
