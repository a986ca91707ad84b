"""The hosts of a campaign's tree, written out: those of an inventory, and those that a notation
names. Whoever reads the tree after it needs neither.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from netbench.base.hostlist import NAMES_MAX, expand, fold, is_notation
from netbench.campaign.problems import Problems
from netbench.campaign.tree import Node, Table, Word, describe, plain
from netbench.fleet.inventory import Inventory, read_inventory

HOSTS, FROM = "hosts", "from"
HOST = "{host}"
_EACH_ITS_OWN = ("ssh", "address")  # keys whose value may be a notation, of a value for each host
_NUMBERS = re.compile(r"\[\d[\d,-]*\]", re.ASCII)  # no IPv6 address


def write_out(problems: Problems, inventories: bool = True) -> str:
    """Write out the hosts of a tree, with what is wrong noted; those of a file only with
    `inventories`. What was written out, in words; "" where nothing was.
    """
    tree = problems.tree
    hosts = tree.entries.get(HOSTS)
    if not isinstance(hosts, Table) or not (
        FROM in hosts.entries or any(map(is_notation, hosts.entries))
    ):
        return ""
    if not inventories and FROM in hosts.entries:
        problems.add((HOSTS, FROM), "expected hosts by their names: a result reads no inventory")
        del hosts.entries[FROM]
    inventory = _inventory(hosts, problems)
    merged = _merged(hosts, inventory, problems)
    for name, node in merged.entries.items():
        merged.entries[name] = _here(node)
    tree.entries[HOSTS] = merged
    if not merged.entries:
        del tree.entries[HOSTS]
    _add_groups(tree, inventory.groups)
    written = plain(hosts.entries[FROM]) if FROM in hosts.entries else ""
    return f"hosts of {written} written out" if written else "hosts written out"


def _inventory(hosts: Table, problems: Problems) -> Inventory:
    """The inventory that `from` names."""
    nothing, written = Inventory(), hosts.entries.get(FROM)
    if written is None:
        return nothing
    if not isinstance(written, Word) or not (written.text or "").strip():
        message = f"expected the path of an inventory, got {describe(plain(written))}"
        problems.add((HOSTS, FROM), message)
        return nothing
    path = Path(os.path.expanduser(written.text or ""))
    if not written.origin:  # on the command line it is as every path there
        path = Path(problems.source).parent / path
    inventory = read_inventory(path)
    problems.add_of_file(HOSTS, inventory.problems)
    return inventory


def _merged(hosts: Table, inventory: Inventory, problems: Problems) -> Table:
    """Every host by its name: what is written for it, over a notation's, over the inventory's."""
    line = hosts.lines.get(FROM, 0)
    merged = replace(hosts, entries={}, lines={}, flow=False, written={})
    for name, keys in inventory.hosts.items():
        words: dict[str, Node] = {"ssh": Word(None, line)}  # this machine
        words |= {key: Word(text, line) for key, text in keys.items()}
        merged.entries[name], merged.lines[name] = Table(words, {}, line), line
    named = _names(hosts, problems)
    order = [*inventory.hosts, *(name for names in named.values() for name in names)]
    notation: dict[str, str] = {}  # that names a host
    for key in sorted(named, key=lambda key: not is_notation(key)):
        nodes = _of_each(key, hosts.entries[key], named[key], problems)
        for name, node in zip(named[key], nodes, strict=True):
            if is_notation(key) and notation.setdefault(name, key) != key:
                message = f"expected each host once, got {name} again, as in {notation[name]}"
                problems.add((HOSTS, key), message)
            merged.entries[name] = _over(merged.entries.get(name), node)
            merged.lines[name], merged.written[name] = hosts.lines[key], key
    merged.entries = {name: merged.entries[name] for name in dict.fromkeys(order)}
    return merged


def _names(hosts: Table, problems: Problems) -> dict[str, list[str]]:
    """By each key but `from` the hosts that it names."""
    named = {}
    for key in hosts.entries:
        if key == FROM:
            continue
        try:
            named[key] = expand(key) if is_notation(key) else [key]
        except ValueError as error:
            problems.add((HOSTS, key), str(error))
            continue
        if sum(map(len, named.values())) > NAMES_MAX:
            problems.add((HOSTS, key), f"expected at most {NAMES_MAX} hosts, got more")
            break
        again = next((name for name, times in Counter(named[key]).items() if times > 1), None)
        if again:
            problems.add((HOSTS, key), f"expected each host once, got {again} again")
            del named[key]
    return named


def _of_each(key: str, node: Node, names: Sequence[str], problems: Problems) -> list[Node]:
    """What a key says of each host that it names."""
    if not isinstance(node, Table) or not is_notation(key):
        return [node] * len(names)
    own: dict[str, list[str]] = {}
    entries = dict(node.entries)
    for part in _EACH_ITS_OWN:
        word = entries.get(part)
        text = (word.text or "") if isinstance(word, Word) else ""
        if _NUMBERS.search(text):
            values = expand(text)
            if len(values) != len(names):
                message = f"expected a value for each of {len(names)} hosts, got {len(values)}"
                problems.add((HOSTS, key, part), message)
                del entries[part]
            else:
                own[part] = values
        elif HOST in text:
            own[part] = [text.replace(HOST, name) for name in names]
    nodes: list[Node] = []
    for i in range(len(names)):
        words = {part: _word(entries[part], values[i]) for part, values in own.items()}
        nodes.append(replace(node, entries=entries | words))
    return nodes


def _word(node: Node, text: str) -> Node:
    return replace(node, text=text) if isinstance(node, Word) else node


def _over(below: Node | None, node: Node) -> Node:
    """What is said of a host in two places."""
    if not isinstance(node, Table) or not isinstance(below, Table):
        return node
    return replace(
        node, entries=below.entries | node.entries, lines=below.lines | node.lines, flow=True
    )


def _here(node: Node) -> Node:
    """A host; `ssh:` without a destination: this machine."""
    ssh = node.entries.get("ssh") if isinstance(node, Table) else None
    if not isinstance(node, Table) or ssh is None or plain(ssh) is not None:
        return node
    entries = {key: value for key, value in node.entries.items() if key != "ssh"}
    return replace(node, entries=entries) if entries else Word("local", node.line)


def _add_groups(tree: Table, groups: Mapping[str, Sequence[str]]) -> None:
    """Those of the inventory, but for those that are written."""
    if not groups:
        return
    table = tree.entries.setdefault("groups", Table(flow=False))
    tree.lines.setdefault("groups", tree.lines[HOSTS])
    if isinstance(table, Table):
        for name, hosts in groups.items():
            table.entries.setdefault(name, Word(fold(hosts), tree.lines[HOSTS]))
            table.lines.setdefault(name, tree.lines[HOSTS])
