"""What an inventory says while it is read, and the hosts and groups that come out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic_core import PydanticCustomError

from netbench.campaign.inventory.variables import KNOWN, OWN, host_keys
from netbench.campaign.messages import nearest
from netbench.campaign.schema.hosts import GROUP, NAME
from netbench.campaign.tree import Plain, describe
from netbench.errors import Problem
from netbench.hostlist import expand

ALL = "all"
UNGROUPED = "ungrouped"
_PORT = re.compile(r"((?:[^\[\]:]|\[[^\]]*\])+):(\d{1,5})", re.ASCII)


@dataclass(frozen=True)
class Inventory:
    """`hosts` has the keys of each host of the campaign file, as words; `groups` the hosts of each
    that has some.
    """

    hosts: Mapping[str, Mapping[str, str]]
    groups: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class At:
    """A place of the file: its line, and in YAML its path."""

    line: int
    path: str = ""


@dataclass
class Group:
    """One group, as far as it has been read."""

    hosts: dict[str, None] = field(default_factory=dict)
    children: dict[str, At] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)


class Draft:
    """Hosts and groups as they are read; what is wrong is noted."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[Problem] = []
        self.hosts: dict[str, dict[str, str]] = {}
        self.groups: dict[str, Group] = {ALL: Group()}

    def add(self, at: At, message: str, hint: str = "") -> None:
        """Note a problem."""
        self.problems.append(Problem(at.line, at.path, message, hint, self.source))

    def group(self, name: str, at: At) -> Group:
        """A group by name."""
        if not re.fullmatch(GROUP, name):
            self.add(
                at,
                "expected a group's name of letters, digits, dots, dashes and underscores, got"
                f" {describe(name)}",
            )
        return self.groups.setdefault(name, Group())

    def name_hosts(self, word: str, group: Group, at: At) -> list[dict[str, str]]:
        """Put hosts into a group, by name or by notation, with a port or without; the variables
        of each.
        """
        port = _PORT.fullmatch(word)
        found = []
        for name in self._names(port[1] if port else word, at):
            group.hosts[name] = None
            found.append(self.hosts.setdefault(name, {}))
        if port:
            self.set_all(found, "ansible_port", port[2], at)
        return found

    def _names(self, word: str, at: At) -> list[str]:
        try:
            names = expand(word)
        except ValueError as error:
            self.add(at, str(error))
            return []
        if wrong := next((name for name in names if not re.fullmatch(NAME, name)), None):
            self.add(
                at,
                "expected a host's name of letters, digits, dots, dashes and underscores, got"
                f" {describe(wrong)}; an address is its variable ansible_host",
            )
            return []
        return names

    def set(self, variables: dict[str, str], name: str, value: Plain, at: At) -> None:
        """Set a variable, if it is one that netbench reads."""
        if name not in KNOWN:
            if name.startswith(OWN):
                own = [known for known in KNOWN if known.startswith(OWN)]
                self.add(at, f"netbench has no variable {name}", nearest(name, own))
            return
        if value is None:
            return
        shown = "" if at.path else f"{name}: "
        if isinstance(value, str) and "{{" in value:
            self.add(at, f"{shown}expected a value, got the template {describe(value)}")
            return
        try:
            KNOWN[name](value)
        except PydanticCustomError as error:
            context = error.context or {}
            self.add(at, f"{shown}{context['text']}", context["nearest"])
            return
        variables[name] = str(value)

    def set_all(self, hosts: Sequence[dict[str, str]], name: str, value: Plain, at: At) -> None:
        """Set a variable of all hosts that one word names; what is wrong is noted once."""
        found: dict[str, str] = {}
        self.set(found, name, value, at)
        for variables in hosts:
            variables.update(found)

    def finish(self) -> Inventory:
        """What was read, each host with the variables of its groups: those of a child over its
        parent's, and its own over all.
        """
        circular = [name for name in self.groups if self._is_circular(name)]
        if circular:
            return Inventory({}, {})
        self.groups[ALL].hosts |= dict.fromkeys(self.hosts)
        members = {name: self._members(name) for name in self.groups}
        depths = self._depths()
        order = sorted(self.groups, key=lambda name: (depths[name], self._priority(name), name))
        hosts = {}
        for name, own in self.hosts.items():
            variables: dict[str, str] = {}
            for group in order:
                if name in members[group]:
                    variables |= self.groups[group].variables
            hosts[name] = host_keys(name, variables | own)
        named = {
            name: tuple(found)
            for name, found in members.items()
            if found and name not in (ALL, UNGROUPED)
        }
        return Inventory(hosts, named)

    def _is_circular(self, name: str) -> bool:
        """Whether a group contains itself, which is noted."""
        circular = False
        for child, at in self.groups[name].children.items():
            if name in self._within(child):
                self.add(at, f"expected groups that do not contain themselves, got {child}")
                circular = True
        return circular

    def _within(self, name: str) -> dict[str, None]:
        """A group and all that lie below it."""
        found, left = {name: None}, [name]
        while left:
            for child in self.groups[left.pop()].children:
                if child not in found:
                    found[child] = None
                    left.append(child)
        return found

    def _members(self, name: str) -> dict[str, None]:
        """The hosts of a group and of those below it."""
        return {host: None for group in self._within(name) for host in self.groups[group].hosts}

    def _depths(self) -> dict[str, int]:
        """How many groups lie above each, on the longest way; above all there is none."""
        depths = dict.fromkeys(self.groups, 1) | {ALL: 0}
        left = list(self.groups)
        while left:
            name = left.pop()
            for child in self.groups[name].children if name != ALL else ():
                if depths[child] <= depths[name]:
                    depths[child] = depths[name] + 1
                    left.append(child)
        return depths

    def _priority(self, name: str) -> int:
        return int(self.groups[name].variables.get("ansible_group_priority", 1))
