"""Reading a host's facts through whatever can read its files."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from netbench.errors import NetbenchError
from netbench.facts import FACTS, Fact


def read_facts(read: Callable[[str], str], wanted: Iterable[Fact] = FACTS) -> tuple[dict[str, str | None], dict[str, str]]:
    """(facts, missing): every fact by name, None where it could not be read, and then the reason in `missing`.

    `read` gives a file's text and raises NetbenchError when it can't. Files that several facts share are read once.
    """
    texts: dict[str, str | NetbenchError] = {}
    facts: dict[str, str | None] = {}
    missing: dict[str, str] = {}
    for fact in wanted:
        if fact.file not in texts:
            try:
                texts[fact.file] = read(fact.file)
            except NetbenchError as error:
                texts[fact.file] = error
        text = texts[fact.file]
        facts[fact.name] = None
        if isinstance(text, NetbenchError):
            missing[fact.name] = f"{fact.file} cannot be read on this host"
            continue
        try:
            facts[fact.name] = fact.parse(text)
        except ValueError as error:
            missing[fact.name] = f"{fact.file}: {error}"
    return facts, missing
