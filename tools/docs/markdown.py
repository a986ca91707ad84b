"""Pieces of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Outside of code, these begin emphasis, HTML or a link.
_SPECIAL = re.compile(r"([*_<>\[\]])")


def prose(text: str) -> str:
    """Text of a docstring or a description: `code` stays code, nothing else is markup."""
    parts = re.split(r"(`[^`\n]+`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else _SPECIAL.sub(r"\\\1", part) for part in parts)


def sentence(text: str) -> str:
    """A description as a sentence; one that begins with the name of a call keeps its case."""
    first = text if re.match(r"\w+\(\d\)", text) else text[:1].upper() + text[1:]
    return f"{prose(first)}."


def code(text: object) -> str:
    """Inline code; empty text stays empty."""
    if text in (None, ""):
        return ""
    fence = "``" if "`" in str(text) else "`"
    return f"{fence}{text}{fence}"


def block(text: str, language: str = "") -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; columns in which every cell is empty are left out."""
    body = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    used = [i for i in range(len(head)) if any(row[i] for row in body)]
    lines = [
        [head[i] for i in used],
        ["---"] * len(used),
        *([row[i] for i in used] for row in body),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def join(*parts: str) -> str:
    """Parts with an empty line between them; empty ones are left out."""
    return "\n\n".join(part for part in parts if part)
