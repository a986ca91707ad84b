"""The campaigns that `init` writes: templates with comments, or with hosts filled in."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files

import yaml

from netbench import campaign
from netbench.base.errors import RequestError
from netbench.model import Host
from netbench.run.discovery import (
    FoundHost,
    Impossible,
    found_hosts,
    impossible,
    placed,
)
from netbench.run.worker_pool import WorkerPool

_HOSTS = re.compile(r"(?m)(?:^#.*\n)*^hosts:\n(?:  .*\n)+")
_KEY = re.compile(r"^ *(\w+):")
_ITEM = re.compile(r"^( *)- (\S+)")


@dataclass(frozen=True)
class Template:
    """A campaign by name, the question that it asks, and its text."""

    name: str
    about: str
    text: str


def templates() -> list[Template]:
    """All of them, in the order of their names."""
    folder = files("netbench.templates")
    found = []
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            text = file.read_text(encoding="utf-8")
            keys = yaml.safe_load(text)
            found.append(Template(keys["name"], keys["about"], text))
    return found


def template(name: str) -> Template:
    """The one of that name. Errors: RequestError."""
    known = {one.name: one for one in templates()}
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise RequestError(
            f"init: expected a template ({', '.join(known)}), got {name!r}{hint}; `init` lists what"
            " each asks"
        )
    return known[name]


def for_hosts(text: str, destinations: Sequence[str], ssh_config: str) -> str:
    """A template's text for these hosts. Errors: RequestError; CampaignError; those of reaching a
    host.
    """
    if len(destinations) < 2 or not all(destinations):
        raise RequestError(
            f"init: --hosts: expected two or more, such as root@snd.example,root@rcv.example, got"
            f" {','.join(destinations)!r}"
        )
    names = ["snd", "rcv", *(f"rcv{i}" for i in range(2, len(destinations)))]
    unplaced = [
        FoundHost(Host(name, None if word == "local" else word))
        for name, word in zip(names, destinations, strict=True)
    ]
    wanted = campaign.parse(filled(text, unplaced, ssh_config), "init --hosts")
    with WorkerPool(wanted) as pool:
        ready = placed(wanted, pool)
        made = filled(text, found_hosts(ready, pool), ssh_config)
        made = without(made, list(impossible(ready, pool)))
    campaign.parse(made, "init --hosts")  # what is written loads
    return made


def filled(text: str, hosts: Sequence[FoundHost], ssh_config: str) -> str:
    """A template's text with these hosts, the first of which sends to all others."""
    lines = ["# Found by `init --hosts`: the first host sends.", "hosts:"]
    for host in hosts:
        lines += [f"  # {' '.join(word.split())}" for word in host.comments]
        lines.append(f"  {host.host.name}: {_value(host.host)}")
    if len(hosts) > 2:
        sender, *receivers = [host.host.name for host in hosts]
        lines.append("pairs:")
        lines += [f"  - {{sender: {sender}, receiver: {name}}}" for name in receivers]
    if ssh_config:
        lines.append(f"ssh_config: {_flow(ssh_config)}")
    return _HOSTS.sub(lambda _: "\n".join(lines) + "\n", text, count=1)


def _value(host: Host) -> str:
    """What a campaign has of a host below `hosts:`."""
    keys = {"ssh": host.ssh, "address": host.address}
    return _flow({key: word for key, word in keys.items() if word} or "local")


def _flow(value: object) -> str:
    """A value in one line of YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, width=math.inf, sort_keys=False)
    return text.removesuffix("...\n").strip()


def without(text: str, impossible: Collection[Impossible]) -> str:
    """With each level that cannot run commented out, and why. Errors: RequestError where nothing to
    compare with is left.
    """
    why = {(one.key, one.level): f"{one.host}: {one.why}" for one in impossible}
    baseline = _baseline(text)
    if baseline in why:
        raise RequestError(
            f"init: {baseline[0]}: {baseline[1]} cannot run, which the others are compared with:"
            f" {why[baseline]}; choose another template, or other hosts"
        )
    return "\n".join(_commented(text.split("\n"), why))


def _baseline(text: str) -> tuple[str, str]:
    compared = campaign.parse(text, "init").compare
    return (compared.factor, compared.baseline) if compared else ("", "")


def _commented(lines: Iterable[str], why: dict[tuple[str, str], str]) -> Iterator[str]:
    key = ""
    for line in lines:
        if (named := _KEY.match(line)) is not None:
            key = named[1]
        item = _ITEM.match(line)
        reason = why.get((key, item[2])) if item else None
        if item and reason:
            yield f"{item[1]}# - {item[2]}  # cannot run on {' '.join(reason.split())}"
        else:
            yield line
