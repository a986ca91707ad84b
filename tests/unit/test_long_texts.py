"""Texts of others take no longer than they are long, however they are made."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from netbench.base.hostlist import expand
from netbench.base.units import parse_time
from netbench.facts.cpu import bandwidth
from netbench.kernels.boot.grub import _braces
from netbench.read.profiles import _MODULE
from netbench.settings.files import CHOICE
from netbench.settings.nfs import _OPTION

MANY = 100_000
TEXTS: list[tuple[Callable[[str], object], str]] = [
    (parse_time, f"1{' ' * MANY}!"),
    (expand, "a," * MANY),
    (expand, f"[{',' * MANY}"),
    (bandwidth, "1" * MANY),
    (_braces, "${" * MANY),
    (_MODULE.search, " [" * MANY),
    (CHOICE.search, "[" * MANY),
    (_OPTION.fullmatch, f"a{' ' * MANY}!"),
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("read", "text"), TEXTS)
def test_a_long_text_is_read_or_refused_soon(read: Callable[[str], object], text: str) -> None:
    with suppress(ValueError):
        read(text)
