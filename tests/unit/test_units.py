"""Sizes, times, rates and shares: dd(1)'s table, refusals, and round trips."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbench.base.units import (
    RATE_PATTERN,
    SHARE_PATTERN,
    SIZE_PATTERN,
    TIME_PATTERN,
    format_duration,
    format_rate,
    format_size,
    format_time,
    parse_rate,
    parse_share,
    parse_size,
    parse_time,
    rounded_size,
    said_of,
)

NUMBERS = st.integers(min_value=0, max_value=2**64 - 1) | st.builds(
    lambda digit, base, power: digit * base**power,
    st.integers(0, 9999),
    st.sampled_from([10, 60, 1000, 1024]),
    st.integers(0, 4),
)

READ: Mapping[tuple[Callable[[str], float], str], Mapping[str, float]] = {
    (parse_size, SIZE_PATTERN): {
        **{"0": 0, "1": 1, "512B": 512, "7c": 7, "1K": 1024, "1k": 1024, "1KiB": 1024},
        **{"1kB": 1000, "1KB": 1000, "64K": 65536, "1M": 1024**2, "1MB": 10**6, "1MiB": 1024**2},
        **{"1.5M": 1572864, ".5K": 512, "16G": 16 * 1024**3, "2GB": 2 * 10**9, "1T": 1024**4},
        **{"1TB": 10**12, "1P": 1024**5, " 64 K ": 65536, "18446744073709551615": 2**64 - 1},
    },
    (parse_time, TIME_PATTERN): {
        **{"0": 0, "1ns": 1, "3us": 3000, "3µs": 3000, "200ms": 2 * 10**8, "1s": 10**9},
        **{"1.5s": 15 * 10**8, "2m": 120 * 10**9, "2h": 7200 * 10**9},
    },
    (parse_rate, RATE_PATTERN): {
        **{"940Mb/s": 940_000_000, "1.5Gbit/s": 1_500_000_000, "10Gbps": 10**10, "1kb/s": 1000},
        **{"1Kb/s": 1000, "100MB/s": 8 * 10**8, "1Tb/s": 10**12, "9b/s": 9},
    },
    (parse_share, SHARE_PATTERN): {
        **{"95%": 0.95, "2.5%": 0.025, "0.95": 0.95, "1 %": 0.01, "100%": 1.0}
    },
}
"""As dd(1) reads sizes; times are nanoseconds, rates bits per second."""


@pytest.mark.parametrize(
    ("parse", "pattern", "word", "expected"),
    [(*how, *row) for how, rows in READ.items() for row in rows.items()],
)
def test_a_word_is_read_as_its_schema_allows_it(
    parse: Callable[[str], float], pattern: str, word: str, expected: float
) -> None:
    assert expected == parse(word)
    assert re.search(pattern, word)


SIZE, TIME = "size such as 64K, 1M or 300kB", "time such as 200ms, 1s or 2m"
WHOLE = "whole number of base units in a"


@pytest.mark.parametrize(
    ("parse", "word", "expected"),
    [
        *((parse_size, word, SIZE) for word in ("", "64Q", "-1", "1e3", "1_000", "٣", "64K 64K")),
        (parse_size, "1.5", f"{WHOLE} {SIZE}"),
        (parse_size, "18446744073709551616", "size below 2^64"),
        (parse_time, "10", TIME),
        (parse_time, "1 day", TIME),
        (parse_time, "0.5ns", f"{WHOLE} {TIME}"),
        (parse_rate, "940M", "rate such as 940Mb/s or 1.5Gb/s"),
        (parse_share, "95 per cent", "percentage such as 95% or 2.5%"),
    ],
)
def test_what_is_refused_says_what_was_expected(
    parse: Callable[[str], float], word: str, expected: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(f'expected a {expected}, got {word!r}')}$"):
        parse(word)


@pytest.mark.parametrize("parse", [parse_size, parse_time, parse_rate, parse_share])
def test_a_fraction_beyond_any_precision_is_not_rounded(parse: Callable[[str], float]) -> None:
    """0.99...9 with more digits than Decimal's is no whole number; thousands are none at all."""
    for word in (
        "0." + "9" * 40 + ("s" if parse is parse_time else "b/s" if parse is parse_rate else ""),
        "9" * 5000,
    ):
        if parse is parse_share and len(word) < 100:
            continue
        with pytest.raises(ValueError, match=r"^expected a "):
            parse(word)


@given(NUMBERS)
def test_what_is_formatted_is_read_back(number: int) -> None:
    assert number == parse_size(format_size(number))
    assert number == parse_time(format_time(number))
    assert number == parse_rate(format_rate(number))


@pytest.mark.parametrize(("parse", "pattern"), READ)
@given(word=st.from_regex(r"[0-9]{0,3}(\.[0-9]{1,2})?[ ]?[a-zA-Z/%µ]{0,4}", fullmatch=True))
def test_no_word_is_read_that_the_schema_refuses(
    parse: Callable[[str], float], pattern: str, word: str
) -> None:
    try:
        parse(word)
    except ValueError:
        return
    assert re.search(pattern, word)


TOLD: Mapping[Callable[[int], str], Mapping[float, str]] = {
    format_size: {
        **{0: "0", 65536: "64K", 64000: "64kB", 1001: "1001", 10**10: "10GB", 2**34: "16G"},
        10**12: "1TB",
    },
    rounded_size: {0: "0", 1023: "1023", 184320: "180K", 1_300_000: "1.2M", 30 << 30: "30G"},
    format_time: {0: "0s", 1: "1ns", 10**9: "1s", 90 * 10**9: "90s", 120 * 10**9: "2m"},
    format_duration: {0: "0 s", 48.4: "48 s", 125: "2 min 05 s", 4320: "1 h 12 min"},
}


@pytest.mark.parametrize(
    ("form", "number", "expected"),
    [(form, *row) for form, rows in TOLD.items() for row in rows.items()],
)
def test_numbers_in_words(form: Callable[[float], str], number: float, expected: str) -> None:
    assert expected == form(number)


@pytest.mark.parametrize(("n", "said"), [(0, "0 runs were"), (1, "1 run was"), (2, "2 runs were")])
def test_words_agree_with_their_number(n: int, said: str) -> None:
    assert said_of(n, "run", "were lost, and count") == f"{said} lost, and count{'s' * (n == 1)}"
