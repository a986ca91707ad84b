"""Keys of pairs, groups and links: which hosts transfer to which, and what they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, TypeAdapter

from netbench.campaign.messages import expected, listed, nearest
from netbench.campaign.schema import kinds
from netbench.campaign.schema.hosts import GROUP, NAMES
from netbench.campaign.schema.keys import Keys, optional, required
from netbench.campaign.schema.kinds import Kind
from netbench.campaign.tree import Plain

PATTERNS = ("ring", "all", "bisection", "star")
ROUNDS_MAX = 1000
_WHAT = "hosts and groups, such as rack1, node[01-64] or a list of these"


def _names(value: Plain) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value
    if isinstance(words, list) and words and all(isinstance(w, str) and w for w in words):
        return tuple(map(str, words))
    raise expected(_WHAT, value)


_WORD: dict[str, Any] = {"type": ["string", "number"], "pattern": f"^({NAMES})$"}
_NAMES = Kind(_names, {"anyOf": [_WORD, {"type": "array", "items": _WORD, "minItems": 1}]})
Names = Annotated[tuple[str, ...], _NAMES]


class PairKeys(Keys):
    """A sender and a receiver; of groups, every sender with every receiver."""

    sender: Names = required("hosts and groups that send", "snd")
    receiver: Names = required("hosts and groups that receive", "rcv")


class RingKeys(Keys):
    """Each host to the next, the last to the first."""

    ring: Names = required("each to the next, the last to the first: hosts and groups", "rack1")


class AllKeys(Keys):
    """Each host to each other."""

    all: Names = required("each to each other: hosts and groups", "rack1")


class BisectionKeys(Keys):
    """All hosts at once, in pairs at random."""

    bisection: Names = required(
        "all at once in pairs at random, by order.seed: hosts and groups", "rack1"
    )
    rounds: Annotated[int | None, kinds.number("rounds", 1, ROUNDS_MAX)] = optional(
        "how often pairs are drawn, no pair twice; left out: 4, or as often as there are others", 8
    )


class StarKeys(Keys):
    """Each host to one, and that one to each."""

    star: Names = required("each to the hub, and the hub to each: hosts and groups", "rack1")
    hub: Annotated[str | None, Kind(lambda value: _names(value)[0], _WORD)] = optional(
        "the host in the middle; left out: the first", "snd"
    )


Pairs = PairKeys | RingKeys | AllKeys | BisectionKeys | StarKeys
_BY_KEY: Mapping[str, type[Pairs]] = {
    "sender": PairKeys,
    "receiver": PairKeys,
    "ring": RingKeys,
    "all": AllKeys,
    "bisection": BisectionKeys,
    "star": StarKeys,
}
_EVERYONE = "all"


def _one(value: Plain) -> Pairs:
    """Pairs that a word or a mapping stands for."""
    if isinstance(value, str) and value in PATTERNS:
        return _BY_KEY[value].model_validate({value: _EVERYONE})
    if isinstance(value, dict):
        kind = next((_BY_KEY[key] for key in value if key in _BY_KEY), PairKeys)
        return kind.model_validate(value)
    what = f"{', '.join(PATTERNS)}, or a mapping such as {{sender: snd, receiver: rcv}}"
    raise expected(what, value, nearest(value, PATTERNS))


_FORMS = [
    {"enum": list(PATTERNS)},
    *(k.model_json_schema() for k in dict.fromkeys(_BY_KEY.values())),
]
_LIST = TypeAdapter(list[Annotated[Any, Kind(_one, {})]])


def _pairs(value: Plain) -> list[Pairs]:
    if isinstance(value, list) and value:
        return _LIST.validate_python(value)
    if isinstance(value, dict) or (isinstance(value, str) and value in PATTERNS):
        return [_one(value)]
    what = f"a list of pairs such as [{{sender: snd, receiver: rcv}}], or {listed(PATTERNS)}"
    raise expected(what, value, nearest(value, PATTERNS))


PAIRS = Kind(
    _pairs,
    {
        "anyOf": [
            {"type": "array", "items": {"anyOf": _FORMS}, "minItems": 1},
            {"enum": list(PATTERNS)},
            {"type": "object", "oneOf": _FORMS[1:]},
        ]
    },
)
GROUPS = dict[
    Annotated[
        str,
        kinds.matching("a group's name of letters, digits, dots, dashes and underscores", GROUP),
    ],
    Names,
]


class LinkKeys(Keys):
    """A part of the network that pairs share."""

    hosts: Names = required("hosts and groups on one side of it", "rack1")
    capacity: Annotated[int, kinds.number("pairs", 1, ROUNDS_MAX)] = optional(
        "how many pairs may use it at once", 4, default="1"
    )


def _link(value: Plain) -> Any:
    return value if isinstance(value, dict) else {"hosts": value}


LINKS = dict[
    Annotated[str, kinds.matching("a link's name of letters, digits, dots and dashes", GROUP)],
    Annotated[LinkKeys, BeforeValidator(_link)],
]
