"""Lines of JSON that were edited by hand, or damaged by a disk: strategies of hypothesis."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hypothesis import strategies as st

from netbench.base.errors import StoreError

Path = tuple[str | int, ...]
DEEP = b"[" * 100_000
RAW = (b"1" + b"0" * 5000, b"1" + b"0" * 400, b"-1e999", b"NaN", b'"\\ud800"', DEEP, b"\xff")
"""Values that no line of netbench has, as bytes of JSON or nearly so."""
_MARK = "somewhere-else"
texts = st.text(st.characters(codec="utf-8"), max_size=8)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(texts, v, max_size=3), max_leaves=4
)


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where a JSON value has others in it."""
    for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
        yield (*path, key)
        if isinstance(item, list | Mapping):
            yield from paths(item, (*path, key))


def changed(value: Any, path: Path, change: Callable[[Any, Any], object]) -> bytes:
    """A JSON object as a line, after `change(container, key)` at a path."""
    copy = json.loads(json.dumps(value))
    container = copy
    for key in path[:-1]:
        container = container[key]
    change(container, path[-1])
    return json.dumps(copy).encode() + b"\n"


def without(value: Any, path: Path) -> bytes:
    """The line without what is at a path."""
    return changed(value, path, lambda container, key: container.pop(key))


def replaced(value: Any, path: Path, new: object) -> bytes:
    """The line with another value at a path."""
    return changed(value, path, lambda container, key: container.__setitem__(key, new))


def spliced(value: Any, path: Path, raw: bytes) -> bytes:
    """The line with bytes at a path that json.dumps would not write."""
    return replaced(value, path, _MARK).replace(json.dumps(_MARK).encode(), raw)


def refusal(parse: Callable[[bytes, str], object], line: bytes, where: str) -> str:
    """The StoreError with which a line is refused; "" where it is read."""
    try:
        parse(line, where)
    except StoreError as error:
        return str(error)
    return ""


@st.composite
def damaged(draw: st.DrawFn, value: Any) -> bytes:
    """A line of this JSON object that was damaged in one place; it may still be a right one."""
    path = draw(st.sampled_from(list(paths(value))))
    line = json.dumps(value).encode() + b"\n"
    cut = draw(st.integers(0, len(line) - 1))
    return draw(
        st.one_of(
            st.just(without(value, path)),
            st.builds(replaced, st.just(value), st.just(path), values),
            st.builds(spliced, st.just(value), st.just(path), st.sampled_from(RAW)),
            st.just(line[:cut]),
            st.binary(min_size=1, max_size=3).map(lambda noise: line[:cut] + noise + line[cut:]),
        )
    )
