"""Reading a host's facts: all questions at once, each asked once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from netbench.base.errors import EngineError
from netbench.facts.fact import NAME, Fact, FactSource
from netbench.facts.registry import FACTS

Question = tuple[str, tuple[str, ...]]
"""An operation that only reads, and its target."""
Answer = str | EngineError
Ask = Callable[[Sequence[Question]], Sequence[Answer]]
"""Answers of the same number and order, with an error in place of one that the host refuses."""
Names = Mapping[str, Sequence[str]]
"""The host's own `interface`, `peer`, `source` and `sink`, and the `tool`s there."""

VALUE_LENGTH = 8192  # of a fact


def read_facts(
    ask: Ask, names: Names, wanted: Iterable[Fact] = FACTS
) -> tuple[dict[str, str | None], dict[str, str]]:
    """(facts, missing): every fact by name, None where it could not be read, and then the reason in
    `missing`. Facts about a name with an empty list are left out; those about a name that is absent
    are missing. Errors: those of losing the host.
    """
    wanted = [fact for fact in wanted if fact.sources]
    targets = {source: _targets(source, names) for fact in wanted for source in fact.sources}
    every = [(source.op, each) for source, paths in targets.items() for each in paths or ()]
    questions = list(dict.fromkeys(one for one in every if one[0] != NAME))
    answers = dict(zip(questions, ask(questions), strict=True))
    answers |= {(NAME, (name,)): name for known in names.values() for name in known}
    facts: dict[str, str | None] = {}
    missing: dict[str, str] = {}
    for fact in wanted:
        whys: dict[str, None] = {}
        for source in fact.sources:
            try:
                if (paths := targets[source]) is None:
                    raise ValueError(f"the {_subject(source)} is not known")
                values = list(dict.fromkeys(_values(source, paths, answers)))
            except EngineError as error:
                whys[error.message.rstrip(": ")] = None
            except (ValueError, LookupError) as error:
                whys[str(error)[:VALUE_LENGTH]] = None
            else:
                if paths:
                    facts[fact.name] = " and ".join(values)
                break
        else:
            facts[fact.name], missing[fact.name] = None, "; ".join(whys)
    return facts, missing


def _subject(source: FactSource) -> str:
    """What a source's target names, such as `interface`; "" where it is the same on all hosts."""
    names = ("interface", "peer", "source", "sink", "tool")
    return next((n for n in names if any(f"{{{n}}}" in part for part in source.target)), "")


def _targets(source: FactSource, names: Names) -> list[tuple[str, ...]] | None:
    """A source's target for each name of the host's that it has; None: it is not known."""
    if not (subject := _subject(source)):
        return [source.target]
    if subject not in names:
        return None
    word = f"{{{subject}}}"
    return [tuple(part.replace(word, name) for part in source.target) for name in names[subject]]


def _values(
    source: FactSource, targets: Iterable[tuple[str, ...]], answers: Mapping[Question, Answer]
) -> Iterator[str]:
    """Errors: EngineError; ValueError that names what was read."""
    for target in targets:
        answer = answers[source.op, target]
        if isinstance(answer, str):
            yield _parsed(source, target, answer)
        elif source.failing is None or source.failing[0] not in answer.message:
            raise answer
        else:
            yield source.failing[1]


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
