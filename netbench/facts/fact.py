"""A fact and its sources, as data."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from netbench.facts.fact_text import words

Parse = Callable[[str], str]
"""Turns the text that was read into the fact. Errors: ValueError with what the text lacks."""

NAME = "name"
KERNEL, CPU, NETWORK, TCP, STORAGE = "kernel", "CPU", "network", "TCP", "storage"
GROUPS = (KERNEL, CPU, NETWORK, TCP, STORAGE)


class FactSource(NamedTuple):
    """Where a fact is read: an operation of the worker, its target, and the parser of its text.

    In the target `{interface}`, `{peer}`, `{source}`, `{sink}` and `{tool}` stand for the host's
    own. Besides the worker's operations, `op` can be NAME (the target itself). `failing`
    is the text of an error that is an answer, and the fact that it stands for.
    """

    op: str
    target: tuple[str, ...]
    parse: Parse = words
    failing: tuple[str, str] | None = None


class Fact(NamedTuple):
    """One fact. Its sources are tried in order; a fact without any comes from the worker's hello.

    `row` is the row of the report's table that shows it together with others. Runs are not pooled
    when a fact with `must_match` differs between them. A fact with `varies` changes by itself.
    `setting` is the setting that changes it.
    """

    name: str
    about: str
    sources: tuple[FactSource, ...] = ()
    group: str = KERNEL
    row: str = ""
    must_match: bool = True
    varies: bool = False
    setting: str = ""
