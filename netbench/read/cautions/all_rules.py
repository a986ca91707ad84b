"""Every rule there is: the classes in this folder that have a name."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Sequence
from functools import cache

import netbench.read.cautions
from netbench.read.cautions.rule import Caution, CautionRule, Evidence
from netbench.read.cells import CellResult
from netbench.read.result import Result


@cache
def kinds_of_rules() -> tuple[type[CautionRule], ...]:
    """The classes, the gravest first."""
    classes: set[type[CautionRule]] = set()
    for module in pkgutil.iter_modules(netbench.read.cautions.__path__):
        path = f"netbench.read.cautions.{module.name}"
        for _, kind in inspect.getmembers(importlib.import_module(path), inspect.isclass):
            if issubclass(kind, CautionRule) and "name" in kind.__dict__:
                classes.add(kind)
    return tuple(sorted(classes, key=lambda kind: (-kind.severity, kind.name)))


def rules() -> tuple[CautionRule, ...]:
    """A new object of each, for one report; the gravest first."""
    return tuple(kind() for kind in kinds_of_rules())


def cautions(
    rules: Iterable[CautionRule], result: Result, cells: Sequence[CellResult]
) -> list[Caution]:
    """What the rules report, in their order. Those that observe must have seen the records."""
    evidence = Evidence(result, cells)
    return [caution for rule in rules for caution in rule.report(evidence)]
