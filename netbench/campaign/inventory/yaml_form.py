"""An inventory in Ansible's YAML form, or a list of names in YAML.

Source: Ansible, plugin ansible.builtin.yaml.
"""

from __future__ import annotations

from netbench.campaign.inventory.draft import ALL, UNGROUPED, At, Draft, Group
from netbench.campaign.messages import listed, nearest
from netbench.campaign.tree import Listing, Loc, Node, Table, Word, describe, path_of, plain
from netbench.campaign.yaml_tree import TreeBuilder

_KEYS = ("hosts", "children", "vars")
_WRITE = "write what Ansible finds: `ansible-inventory -i FILE --list --yaml > hosts.yaml`"


def read(text: str, draft: Draft) -> None:
    """Read a file's text into a draft. Errors: CampaignError for what is not YAML."""
    builder = TreeBuilder(text, draft.source, tags=True)
    root = builder.root()
    for problem in builder.problems:
        draft.add(At(problem.line, problem.path), problem.message)
    if isinstance(root, Listing):
        _names(root, draft)
    elif not isinstance(root, Table):
        what = "a mapping of groups such as all, or a list of hosts"
        got = "an empty file" if plain(root) is None else describe(plain(root))
        draft.add(At(root.line), f"expected {what}, got {got}")
    elif "_meta" in root.entries or "plugin" in root.entries:
        key = "plugin" if "plugin" in root.entries else "_meta"
        draft.add(At(root.lines[key], key), f"expected an inventory with its hosts; {_WRITE}")
    else:
        for name, node in root.entries.items():
            _group(name, node, root.lines[name], (name,), draft)


def _names(root: Listing, draft: Draft) -> None:
    group = draft.group(UNGROUPED, At(0))
    for i, item in enumerate(root.items):
        at = At(item.line, path_of((i,)))
        if isinstance(item, Word) and item.text is not None:
            draft.name_hosts(item.text, group, at)
        else:
            draft.add(at, f"expected a host's name, got {describe(plain(item))}")


def _group(name: str, node: Node, line: int, loc: Loc, draft: Draft) -> None:
    group = draft.group(name, At(line, path_of(loc)))
    for key, below in _entries(node, line, loc, "a mapping with hosts, children or vars", draft):
        at, where = _at(node, key, loc), (*loc, key)
        if key not in _KEYS:
            draft.add(at, f"unknown key, expected {listed(_KEYS)}", nearest(key, _KEYS))
        elif key == "hosts":
            for host, variables in _entries(below, at.line, where, "a mapping of hosts", draft):
                _host(host, variables, _at(below, host, where), (*where, host), group, draft)
        elif key == "children":
            for child, inner in _entries(below, at.line, where, "a mapping of groups", draft):
                place = _at(below, child, where)
                _group(child, inner, place.line, (*where, child), draft)
                if name != ALL:
                    group.children[child] = place
        else:
            for variable, value in _entries(below, at.line, where, "a mapping", draft):
                draft.set_all(
                    [group.variables], variable, plain(value), _at(below, variable, where)
                )


def _host(host: str, node: Node, at: At, loc: Loc, group: Group, draft: Draft) -> None:
    named = draft.name_hosts(host, group, at)
    for variable, value in _entries(node, at.line, loc, "a mapping of variables", draft):
        draft.set_all(named, variable, plain(value), _at(node, variable, loc))


def _at(table: Node, key: str, loc: Loc) -> At:
    line = table.lines.get(key, 0) if isinstance(table, Table) else 0
    return At(line, path_of((*loc, key)))


def _entries(node: Node, line: int, loc: Loc, what: str, draft: Draft) -> list[tuple[str, Node]]:
    """What a mapping holds; nothing written is an empty one."""
    if isinstance(node, Table):
        return list(node.entries.items())
    if not isinstance(node, Word) or node.text is not None:
        draft.add(At(line, path_of(loc)), f"expected {what}, got {describe(plain(node))}")
    return []
