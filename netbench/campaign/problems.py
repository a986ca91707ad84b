"""Gathers everything that is wrong with a campaign file, each with its line, path and origin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from pydantic import ValidationError

from netbench.base.errors import CampaignError, Problem
from netbench.campaign.schema.keys import Keys
from netbench.campaign.tree import Loc, Table, as_written, find, path_of, plain, word_at

K = TypeVar("K", bound=Keys)


class Problems:
    """The problems of one file; `tree` locates them."""

    def __init__(self, tree: Table, source: str, noted: Iterable[Problem] = ()) -> None:
        self.tree = tree
        self.source = source
        self.noted = list(noted)
        self.warnings: list[str] = []
        self._touched: set[str] = set()
        self._words: set[tuple[int, str]] = set()
        self._told: set[Problem] = set()

    def warn(self, loc: Loc, message: str) -> None:
        """Note what is no error, but may not be meant."""
        line, origin = find(self.tree, loc)
        path = path_of(as_written(self.tree, loc))
        place = f"line {line}: {path}" if line else path
        self.warnings.append(f"{place}: {message}" + (f" (from {origin})" if origin else ""))

    def add(self, loc: Loc, message: str, nearest: str = "") -> None:
        """Note a problem at a place of the tree; what is said of several hosts is noted once."""
        word = word_at(self.tree, loc)
        if word and (id(word), message) in self._words:
            return
        self._words.add((id(word), message))
        line, origin = find(self.tree, loc)
        path = path_of(as_written(self.tree, loc))
        text = message + (f" (from {origin})" if origin else "")
        problem = Problem(line, path, text, nearest)
        if problem not in self._told:
            self._told.add(problem)
            self.noted.append(problem)
        self._touched.add(str(loc[0]) if loc else "")

    def add_of_file(self, key: str, found: Sequence[Problem]) -> None:
        """Note what is wrong with another file, which a top-level key names."""
        self.noted.extend(found)
        if found:
            self._touched.add(key)

    def add_all(self, error: ValidationError, loc: Loc = (), below: int = 0) -> None:
        """Note what a model found at `loc`; `below` leading keys of it are not in the tree."""
        for detail in error.errors(include_url=False):
            context = detail.get("ctx", {})
            inner = tuple(part for part in detail["loc"] if part != "[key]")
            self.add(
                (*loc, *inner[below:]),
                context.get("text", detail["msg"]),
                context.get("nearest", ""),
            )

    def clean(self, *keys: str) -> bool:
        """Whether nothing is wrong with these top-level keys, which are then checked together."""
        return self._touched.isdisjoint(keys)

    def read(self, model: type[K], fallback: dict[str, object]) -> K:
        """The tree as a model. Wrong top-level keys are noted, and left out or of `fallback`."""
        values = {key: plain(node) for key, node in self.tree.entries.items()}
        try:
            return model.model_validate(values)
        except ValidationError as error:
            self.add_all(error)
        for key in self._touched:
            values.pop(key, None)
        return model.model_validate(
            {**{k: v for k, v in fallback.items() if k not in values}, **values}
        )

    def stop(self) -> None:
        """Raise CampaignError when anything was noted."""
        if self.noted:
            raise CampaignError(self.source, self.noted)
