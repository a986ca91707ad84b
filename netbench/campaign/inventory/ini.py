"""An inventory in Ansible's INI form; a list of names is one without sections.

Source: Ansible, "How to build your inventory", and its plugin ansible.builtin.ini.
"""

from __future__ import annotations

import re
import shlex

from netbench.campaign.inventory.draft import ALL, UNGROUPED, At, Draft, Group
from netbench.campaign.messages import nearest
from netbench.campaign.tree import describe

_SECTION = re.compile(r"\[([^\[\]:\s]+)(?::([^\[\]\s]*))?\]\s*(?:[#;].*)?")
_KINDS = ("children", "vars")


def read(text: str, draft: Draft) -> None:
    """Read a file's text into a draft."""
    group, kind = draft.group(UNGROUPED, At(0)), ""
    declared = {ALL, UNGROUPED}
    named: dict[str, tuple[At, str]] = {}  # groups that must be declared somewhere
    for number, written in enumerate(text.splitlines(), 1):
        line, at = written.strip(), At(number)
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            section = _SECTION.fullmatch(line)
            if not section or section[2] not in (None, *_KINDS):
                what = "a section such as [rack1], [racks:children] or [rack1:vars]"
                hint = nearest(section[2], _KINDS) if section else ""
                draft.add(at, f"expected {what}, got {describe(line)}", hint)
                group, kind = Group(), "unknown"
                continue
            group, kind = draft.group(section[1], at), section[2] or ""
            if kind == "vars":
                named.setdefault(section[1], (at, f"[{section[1]}:vars]"))
            else:
                declared.add(section[1])
        elif kind == "children":
            child = line.split("#")[0].strip()
            named.setdefault(child, (at, child))
            draft.group(child, at)
            group.children[child] = at
        elif kind == "vars":
            _variable(line, group, draft, at)
        elif not kind:
            _host(line, group, draft, at)
    for name, (at, shown) in named.items():
        if name not in declared:
            draft.add(
                at, f"expected a group that has a section, got {shown}", nearest(name, declared)
            )


def _variable(line: str, group: Group, draft: Draft, at: At) -> None:
    name, equals, value = (part.strip() for part in line.partition("="))
    if not equals or not name:
        draft.add(at, f"expected NAME=VALUE, got {describe(line)}")
        return
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    draft.set(group.variables, name, value[1:-1] if quoted else value, at)


def _host(line: str, group: Group, draft: Draft, at: At) -> None:
    try:
        host, *words = shlex.split(line, comments=True)
    except ValueError as error:
        draft.add(at, f"expected a host and its variables: {str(error).lower()}")
        return
    hosts = draft.name_hosts(host, group, at)
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            draft.add(at, f"expected NAME=VALUE after the host, got {describe(word)}")
            continue
        draft.set_all(hosts, name, value, at)
