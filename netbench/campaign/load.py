"""YAML -> model.Campaign: parse the tree, apply --set and --quick, write out hosts, read the shape,
then check what keys mean together.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from netbench.base.errors import CampaignError, Problem
from netbench.campaign import edit
from netbench.campaign.build import build
from netbench.campaign.hosts import write_out
from netbench.campaign.problems import Problems
from netbench.campaign.schema.file import file_model
from netbench.campaign.tree import Node, Table, Word, dump, tables
from netbench.campaign.yaml_tree import BYTES_MAX, decode, parse_tree, parse_value
from netbench.engine.catalogue import Catalogue
from netbench.engine.own_engine import local
from netbench.model import Campaign

_TRANSFER = "netbench: 1\nname: transfer\ntransfer: {}\nverify: false\n"
_CHANGED = "# effective campaign of:"
FILES = ("deb", "tree", "git", "config", "fragment", "image", "initrd")  # keys of kernels
NO_FILE = re.compile(r"\w+config|lab")  # but a target of make, or the fragment of netbench's own
_LOCAL_WORDS = {"source": ("memory", "zero"), "sink": ("discard",)}


def load(
    path: Path | str,
    sets: Sequence[str] = (),
    catalogue: Catalogue | None = None,
    quick: bool = False,
) -> Campaign:
    """Read a campaign file. `sets`: words of --set. Errors: CampaignError with every problem."""
    source = str(path)
    try:
        with Path(path).open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise CampaignError(
            source,
            [Problem(0, "", f"cannot be read: {error.strerror}; give the path of a campaign file")],
        ) from error
    return parse(decode(data, source), source, sets, catalogue, quick)


def parse(
    text: str,
    source: str,
    sets: Sequence[str] = (),
    catalogue: Catalogue | None = None,
    quick: bool = False,
    inventories: bool = True,
) -> Campaign:
    """Read a campaign from text; `source` names it in messages. Without `inventories` no other file
    is read: of a result, which may be anybody's. Errors: CampaignError with every problem of the
    text.
    """
    problems, notes = written_out(text, source, sets, quick, inventories)
    if any(notes):
        text = _effective(problems.tree, " ".join(filter(None, notes)))
    return build(problems.tree, problems, catalogue or local(), text)


def written_out(
    text: str, source: str, sets: Sequence[str] = (), quick: bool = False, inventories: bool = True
) -> tuple[Problems, list[str]]:
    """The tree of a campaign file, in which paths are absolute and hosts by their names, with what
    is wrong noted; and what was written out.
    """
    tree, noted = parse_tree(text, source)
    if quick:
        edit.apply_quick(tree, source)
    problems = Problems(tree, source, [*noted, *edit.apply_sets(tree, sets, source)])
    rooted = inventories and _rooted(tree, Path(source).absolute().parent)
    sets = [f"--set {word}" for word in sets]
    notes = [write_out(problems, inventories), "paths written out" if rooted else "", *sets]
    return problems, [*notes, "--quick"] if quick else notes


def _rooted(tree: Table, folder: Path) -> bool:
    """Whether files of this machine are written relative to the campaign file, whose folder this
    is, or on the command line; in the tree they are absolute then.
    """
    kernels = list(tables(tree.entries.get("kernels")))
    nodes = [("ssh_config", tree), *((key, each) for key in FILES for each in kernels)]
    words = [(key, table.entries.get(key)) for key, table in nodes]
    relative = [
        word
        for key, word in words
        if isinstance(word, Word)
        and not os.path.expanduser(word.text or "/").startswith("/")
        and not (key in ("config", "fragment") and NO_FILE.fullmatch(word.text or ""))
        and (key, word.text) != ("ssh_config", "none")  # OpenSSH's word for none
    ]
    for word in relative:
        word.text = str((Path.cwd() if word.origin else folder) / (word.text or ""))
    return bool(relative)


def changed(campaign: Campaign, keys: Mapping[str, str]) -> Campaign:
    """A campaign, or a part of one, with some keys changed, as by --set: its text says so, beside
    what was changed before. Errors: CampaignError.
    """
    first = campaign.text.partition("\n")[0]
    before = first.removeprefix(_CHANGED) if first.startswith(_CHANGED) else ""
    sets = [f"{path}={value}" for path, value in keys.items()]
    edited = parse(campaign.text, campaign.name, sets)
    if campaign.part:
        hosts = {name: edited.hosts[name] for name in campaign.hosts}
        edited = edited._replace(part=campaign.part, pairs=campaign.pairs, hosts=hosts)
    note, _, rest = edited.text.partition("\n")
    return edited._replace(text=f"{_CHANGED}{before}{note.removeprefix(_CHANGED)}\n{rest}")


def transfer_cell(arguments: Sequence[str], catalogue: Catalogue | None = None) -> Campaign:
    """A campaign `transfer` of one cell on this machine from words PATH=VALUE below `transfer.` (or
    a top-level key).

    `source=F` and `sink=F` are files unless F is a word of the campaign file or a flow mapping.
    Errors: CampaignError.
    """
    source = "transfer"
    catalogue = catalogue or local()
    tree, _ = parse_tree(_TRANSFER, source)
    problems = Problems(tree, source)
    for argument in arguments:
        try:
            path, value = edit.split_set(argument, source, "")
            top = path.partition(".")[0]
            if top in ("sweep", "include", "exclude"):
                raise CampaignError(
                    source,
                    [Problem(0, top, "`transfer` runs one cell; write a campaign file for more")],
                )
            path = path if top in file_model(catalogue).model_fields else f"transfer.{path}"
            edit.put(tree, path, _argument(path, value, argument), source)
            edit.drop_other_bound(tree, path)
        except CampaignError as error:
            problems.noted.extend(error.problems)
    _one_run(tree)
    write_out(problems)
    _rooted(tree, Path.cwd())  # `restore` may be called elsewhere
    text = _effective(tree, f"transfer {' '.join(arguments)}")
    return build(tree, problems, catalogue, text)


def _argument(path: str, value: str, origin: str) -> Node:
    """The value of one word; a file's name is taken as it is."""
    known = _LOCAL_WORDS.get(path.removeprefix("transfer."))
    if known is None or value in known or not value or value.startswith("{"):
        return parse_value(value, "transfer", origin)
    return Table({"file": Word(value, 0, origin, '"')}, {"file": 0}, 0, origin)


def _one_run(tree: Table) -> None:
    """One run after a short warm-up, unless asked otherwise."""
    transfer = tree.entries["transfer"]
    if isinstance(transfer, Table) and not {"bytes", "requests"} & {*transfer.entries}:
        transfer.entries.setdefault("warmup", Word("200ms"))
    repeat = tree.entries.setdefault("repeat", Table())
    if isinstance(repeat, Table):
        repeat.entries.setdefault("min", Word("1"))
        repeat.entries.setdefault("max", repeat.entries["min"])


def _effective(tree: Table, options: str) -> str:
    note = options.encode("unicode_escape").decode("ascii")
    return f"{_CHANGED} {note}\n{dump(tree)}"
