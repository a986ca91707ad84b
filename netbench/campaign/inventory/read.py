"""A file -> its inventory, whatever its form."""

from __future__ import annotations

import re
from pathlib import Path

from netbench.campaign.inventory import ini, yaml_form
from netbench.campaign.inventory.draft import At, Draft, Inventory
from netbench.campaign.yaml_tree import BYTES_MAX, decode, refuse_unprintable
from netbench.errors import CampaignError, Problem

_YAML = (".yaml", ".yml", ".json")
_INI = (".ini", ".cfg")
_MAPPING = re.compile(r"---|- |\{|[\w.-]+:(\s|$)")  # how YAML begins


def read_inventory(path: Path) -> tuple[Inventory, list[Problem]]:
    """The inventory of a file, and all that is wrong with it."""
    source = str(path)
    draft = Draft(source)
    try:
        with path.open("rb") as file:
            text = decode(file.read(BYTES_MAX + 1), source)
        refuse_unprintable(text, source)
        _read(path, text, draft)
    except OSError as error:
        draft.add(At(0), f"cannot be read: {error.strerror}; give the path of an inventory")
    except CampaignError as error:
        draft.problems += [
            Problem(one.line, one.path, one.message, one.nearest, source) for one in error.problems
        ]
    inventory = draft.finish()
    if not inventory.hosts and not draft.problems:
        draft.add(At(0), "expected hosts, got none")
    return inventory, draft.problems


def _read(path: Path, text: str, draft: Draft) -> None:
    if text.startswith("#!"):
        draft.add(
            At(1),
            "this is a program; write what it finds: `ansible-inventory -i FILE --list --yaml >"
            " hosts.yaml`",
        )
        return
    lines = (line for line in text.splitlines() if line.strip() and line.lstrip()[0] not in "#;")
    begins = bool(_MAPPING.match(next(lines, "")))
    is_yaml = path.suffix in _YAML or (path.suffix not in _INI and begins)
    (yaml_form if is_yaml else ini).read(text, draft)
