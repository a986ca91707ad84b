"""The wording of errors in a campaign file, as errors that pydantic carries."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pydantic_core import PydanticCustomError

from netbench.campaign.tree import describe


def wrong(text: str, nearest: str = "") -> PydanticCustomError:
    """An error of a value, in netbench's words, with the nearest valid word."""
    return PydanticCustomError("netbench", "{text}", {"text": text, "nearest": nearest})


def expected(what: str, got: object, nearest: str = "") -> PydanticCustomError:
    """The usual error of a value: what was expected and what was found."""
    return wrong(f"expected {what}, got {describe(got)}", nearest)


def nearest(word: object, valid: Iterable[str]) -> str:
    """The valid word that is most like `word`, or ""."""
    if not isinstance(word, str):
        return ""
    lowered = {v.lower(): v for v in valid}
    matches = difflib.get_close_matches(word.lower(), lowered, 1, 0.7 if len(word) < 3 else 0.6)
    return lowered[matches[0]] if matches else ""


def listed(words: Iterable[str]) -> str:
    """Words in a sentence: `a, b or c`."""
    every = list(words)
    return every[0] if len(every) == 1 else f"{', '.join(every[:-1])} or {every[-1]}"
