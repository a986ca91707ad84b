"""Reading a host's facts: each question is asked once, and as many at a time as are known to be
needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from netbench.errors import EngineError
from netbench.facts.base import Fact, FactSource
from netbench.facts.registry import FACTS

Question = tuple[str, tuple[str, ...]]
"""An operation that only reads, and its target."""
Answer = str | EngineError
Ask = Callable[[Sequence[Question]], Sequence[Answer]]
"""Answers of the same number and order, with an error in place of one that the host refuses."""

MOUNTS: Question = ("file", ("/proc/self/mountinfo",))


class _Unasked(Exception):
    """What must be asked before a way can be followed."""

    def __init__(self, questions: Iterable[Question]) -> None:
        self.questions = tuple(questions)
        super().__init__(self.questions)


class _Texts:
    """Answers by question; the operations that are made of others."""

    def __init__(self, names: Mapping[str, Sequence[str]]) -> None:
        self._names = names
        self._known: dict[Question, Answer] = {}

    def learn(self, questions: Sequence[Question], ask: Ask) -> None:
        self._known |= zip(questions, ask(questions), strict=True)

    def _text(self, question: Question) -> str:
        if question not in self._known:
            raise _Unasked([question])
        answer = self._known[question]
        if isinstance(answer, EngineError):
            raise answer
        return answer

    def of(self, op: str, target: tuple[str, ...]) -> str:
        """The text that an operation gives. Errors: _Unasked; EngineError."""
        if op == "name":
            return target[0]
        if op == "mount":
            return self._mount(target[0])
        if op == "files":
            return self._files(target[0])
        return self._text((op, target))

    def _mount(self, path: str) -> str:
        resolved: Question = ("exec", ("readlink", "-f", "--", path))
        missing = [question for question in (resolved, MOUNTS) if question not in self._known]
        if missing:
            raise _Unasked(missing)
        return f"{self._text(resolved).rstrip()}\n{self._text(MOUNTS)}"

    def _files(self, folder: str) -> str:
        names = self._text(("list", (folder,))).split()
        questions: list[Question] = [("file", (f"{folder}/{name}",)) for name in names]
        missing = [question for question in questions if question not in self._known]
        if missing:
            raise _Unasked(missing)
        return "".join(
            f"{name}: {self._text(q).strip()}\n" for name, q in zip(names, questions, strict=True)
        )

    def targets(self, way: FactSource) -> list[tuple[str, ...]]:
        """A way's target for each thing that the host has of what it names. Errors: ValueError when
        that is not known.
        """
        for name in ("interface", "peer", "source", "sink"):
            if any(f"{{{name}}}" in part for part in way.target):
                if name not in self._names:
                    raise ValueError(f"its {name} is not known")
                return [
                    tuple(part.replace(f"{{{name}}}", value) for part in way.target)
                    for value in self._names[name]
                ]
        return [way.target]


def read_facts(
    ask: Ask, names: Mapping[str, Sequence[str]], wanted: Iterable[Fact] = FACTS
) -> tuple[dict[str, str | None], dict[str, str]]:
    """(facts, missing): every fact by name, None where it could not be read, and then the reason in
    `missing`.

    `names`: what of `interface`, `peer`, `source` and `sink` the host has; facts of what it has
    none of are left out, those of what is not there are missing. Errors: those of losing the host.
    """
    texts = _Texts(names)
    settled: dict[str, tuple[str | None, str] | None] = {}
    pending = [fact for fact in wanted if fact.sources]
    order = [fact.name for fact in pending]
    while pending:
        needed: dict[Question, None] = {}
        left = []
        for fact in pending:
            try:
                settled[fact.name] = _settle(fact, texts)
            except _Unasked as unasked:
                needed |= dict.fromkeys(unasked.questions)
                left.append(fact)
        pending = left
        if needed:
            texts.learn(list(needed), ask)
    there = {name: found for name in order if (found := settled[name]) is not None}
    return {name: value for name, (value, _) in there.items()}, {
        name: why for name, (value, why) in there.items() if value is None
    }


def _settle(fact: Fact, texts: _Texts) -> tuple[str | None, str] | None:
    """(value, "") or (None, why); None where the host has none of what the fact is about. Errors:
    _Unasked.
    """
    whys: dict[str, None] = {}
    for way in fact.sources:
        try:
            targets = texts.targets(way)
            values = list(dict.fromkeys(_follow(way, targets, texts)))
        except EngineError as error:
            whys[error.message.rstrip(": ")] = None
        except ValueError as error:
            whys[str(error)] = None
        else:
            return (" and ".join(values), "") if targets else None
    return None, "; ".join(whys)


def _follow(way: FactSource, targets: Iterable[tuple[str, ...]], texts: _Texts) -> Iterator[str]:
    for target in targets:
        try:
            text = texts.of(way.op, target)
        except EngineError as error:
            if way.failing is None or way.failing[0] not in error.message:
                raise
            yield way.failing[1]
        else:
            yield _parsed(way, target, text)


def _parsed(way: FactSource, target: tuple[str, ...], text: str) -> str:
    """Errors: ValueError that names what was read."""
    try:
        value = way.parse(text)
    except ValueError as error:
        raise ValueError(f"{target[0]}: {error}") from error
    if not value:
        raise ValueError(f"{target[0]}: it is empty")
    return value
