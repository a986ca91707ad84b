"""Reading a host's facts: each question is asked once, together with all others that are known to
be needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from netbench.base.errors import EngineError
from netbench.facts.fact import Fact, FactSource
from netbench.facts.registry import FACTS

Question = tuple[str, tuple[str, ...]]
"""An operation that only reads, and its target."""
Answer = str | EngineError
Ask = Callable[[Sequence[Question]], Sequence[Answer]]
"""Answers of the same number and order, with an error in place of one that the host refuses."""

FILES_MAX = 1024  # of a folder
VALUE_LENGTH = 8192  # of a fact

MOUNTS: Question = ("file", ("/proc/self/mountinfo",))


class _Unasked(Exception):
    """The questions that must be asked before a source can be read."""

    def __init__(self, questions: Iterable[Question]) -> None:
        self.questions = tuple(questions)
        super().__init__(self.questions)


class _Texts:
    """Answers by question, and the operations that are composed of others."""

    def __init__(self, names: Mapping[str, Sequence[str]]) -> None:
        self._names = names
        self._known: dict[Question, Answer] = {}

    def learn(self, questions: Sequence[Question], ask: Ask) -> None:
        self._known |= zip(questions, ask(questions), strict=True)

    def _all(self, questions: Sequence[Question]) -> list[str]:
        """The texts that answer questions. Errors: _Unasked; EngineError."""
        if missing := [question for question in questions if question not in self._known]:
            raise _Unasked(missing)
        answers = [self._known[question] for question in questions]
        for answer in answers:
            if isinstance(answer, EngineError):
                raise answer
        return [str(answer) for answer in answers]

    def of(self, op: str, target: tuple[str, ...]) -> str:
        """The text that an operation gives. Errors: _Unasked; EngineError."""
        if op == "name":
            return target[0]
        if op == "mount":
            path, mounts = self._all([("exec", ("readlink", "-f", "--", target[0])), MOUNTS])
            return f"{path.rstrip()}\n{mounts}"
        if op == "files":
            names = self._all([("list", target)])[0].split()[:FILES_MAX]
            texts = self._all([("file", (f"{target[0]}/{name}",)) for name in names])
            pairs = zip(names, texts, strict=True)
            return "".join(f"{name}: {text.strip()}\n" for name, text in pairs)
        return self._all([(op, target)])[0]

    def targets(self, source: FactSource) -> list[tuple[str, ...]]:
        """A source's target for each interface, peer or file of the host that it names. Errors:
        ValueError when those are not known.
        """
        for name in ("interface", "peer", "source", "sink", "tool", "memory"):
            if any(f"{{{name}}}" in part for part in source.target):
                if name not in self._names:
                    raise ValueError(f"the {name} is not known")
                return [
                    tuple(part.replace(f"{{{name}}}", value) for part in source.target)
                    for value in self._names[name]
                ]
        return [source.target]


def read_facts(
    ask: Ask, names: Mapping[str, Sequence[str]], wanted: Iterable[Fact] = FACTS
) -> tuple[dict[str, str | None], dict[str, str]]:
    """(facts, missing): every fact by name, None where it could not be read, and then the reason in
    `missing`.

    `names`: the host's own `interface`, `peer`, `source`, `sink` and `memory`, and the `tool`s
    there. Facts about a name with an empty list are left out; those about a name that is absent are
    missing. Errors: those of losing the host.
    """
    texts = _Texts(names)
    outcomes: dict[str, tuple[str | None, str] | None] = {}
    pending = [fact for fact in wanted if fact.sources]
    order = [fact.name for fact in pending]
    while pending:
        needed: dict[Question, None] = {}
        left = []
        for fact in pending:
            try:
                outcomes[fact.name] = _settle(fact, texts)
            except _Unasked as unasked:
                needed |= dict.fromkeys(unasked.questions)
                left.append(fact)
        pending = left
        if needed:
            texts.learn(list(needed), ask)
    present = {name: outcome for name in order if (outcome := outcomes[name]) is not None}
    return {name: value for name, (value, _) in present.items()}, {
        name: why for name, (value, why) in present.items() if value is None
    }


def _settle(fact: Fact, texts: _Texts) -> tuple[str | None, str] | None:
    """(value, "") or (None, why); None where the host has nothing that the fact is about. Errors:
    _Unasked.
    """
    whys: dict[str, None] = {}
    for source in fact.sources:
        try:
            targets = texts.targets(source)
            values = list(dict.fromkeys(_values(source, targets, texts)))
        except EngineError as error:
            whys[error.message.rstrip(": ")] = None
        except (ValueError, LookupError) as error:
            whys[str(error)[:VALUE_LENGTH]] = None
        else:
            return (" and ".join(values), "") if targets else None
    return None, "; ".join(whys)


def _values(source: FactSource, targets: Iterable[tuple[str, ...]], texts: _Texts) -> Iterator[str]:
    for target in targets:
        try:
            text = texts.of(source.op, target)
        except EngineError as error:
            if source.failing is None or source.failing[0] not in error.message:
                raise
            yield source.failing[1]
        else:
            yield _parsed(source, target, text)


def _parsed(source: FactSource, target: tuple[str, ...], text: str) -> str:
    """Errors: ValueError that names what was read."""
    try:
        value = source.parse(text)
    except ValueError as error:
        raise ValueError(f"{target[0]}: {error}") from error
    if not value:
        raise ValueError(f"{target[0]}: it is empty")
    if len(value) > VALUE_LENGTH:
        raise ValueError(f"{target[0]}: {len(value)} characters, expected at most {VALUE_LENGTH}")
    return value
