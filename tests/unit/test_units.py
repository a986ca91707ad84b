"""Sizes, times, rates and shares: dd(1)'s table, refusals, and round trips."""

from __future__ import annotations

import re

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

SIZES = [
    ("0", 0),
    ("1", 1),
    ("512B", 512),
    ("7c", 7),
    ("1K", 1024),
    ("1k", 1024),
    ("1KiB", 1024),
    ("1kB", 1000),
    ("1KB", 1000),
    ("64K", 65536),
    ("1M", 1024**2),
    ("1MB", 10**6),
    ("1MiB", 1024**2),
    ("1.5M", 1572864),
    (".5K", 512),
    ("16G", 16 * 1024**3),
    ("2GB", 2 * 10**9),
    ("1T", 1024**4),
    ("1TB", 10**12),
    ("1P", 1024**5),
    (" 64 K ", 65536),
    ("18446744073709551615", 2**64 - 1),
]
TIMES = [
    ("0", 0),
    ("1ns", 1),
    ("3us", 3000),
    ("3µs", 3000),
    ("200ms", 2 * 10**8),
    ("1s", 10**9),
    ("1.5s", 15 * 10**8),
    ("2m", 120 * 10**9),
    ("2h", 7200 * 10**9),
]
RATES = [
    ("940Mb/s", 940_000_000),
    ("1.5Gbit/s", 1_500_000_000),
    ("10Gbps", 10**10),
    ("1kb/s", 1000),
    ("1Kb/s", 1000),
    ("100MB/s", 8 * 10**8),
    ("1Tb/s", 10**12),
    ("9b/s", 9),
]
SHARES = [("95%", 0.95), ("2.5%", 0.025), ("0.95", 0.95), ("1 %", 0.01), ("100%", 1.0)]


@pytest.mark.parametrize(("word", "expected"), SIZES)
def test_size_is_read_as_dd_reads_it(word: str, expected: int) -> None:
    assert expected == parse_size(word)
    assert re.search(SIZE_PATTERN, word)


@pytest.mark.parametrize(("word", "expected"), TIMES)
def test_time_is_nanoseconds(word: str, expected: int) -> None:
    assert expected == parse_time(word)
    assert re.search(TIME_PATTERN, word)


@pytest.mark.parametrize(("word", "expected"), RATES)
def test_rate_is_bits_per_second(word: str, expected: int) -> None:
    assert expected == parse_rate(word)
    assert re.search(RATE_PATTERN, word)


@pytest.mark.parametrize(("word", "expected"), SHARES)
def test_share_is_a_fraction(word: str, expected: float) -> None:
    assert expected == parse_share(word)
    assert re.search(SHARE_PATTERN, word)


@pytest.mark.parametrize(
    ("parse", "word", "message"),
    [
        (parse_size, "", "expected a size such as 64K, 1M or 300kB, got ''"),
        (parse_size, "64Q", "expected a size such as 64K, 1M or 300kB, got '64Q'"),
        (parse_size, "-1", "expected a size such as 64K, 1M or 300kB, got '-1'"),
        (parse_size, "1e3", "expected a size such as 64K, 1M or 300kB, got '1e3'"),
        (parse_size, "1_000", "expected a size such as 64K, 1M or 300kB, got '1_000'"),
        (parse_size, "٣", "expected a size such as 64K, 1M or 300kB, got '٣'"),
        (parse_size, "64K 64K", "expected a size such as 64K, 1M or 300kB, got '64K 64K'"),
        (
            parse_size,
            "1.5",
            "expected a whole number of base units in a size such as 64K, 1M or 300kB, got '1.5'",
        ),
        (
            parse_size,
            "18446744073709551616",
            "expected a size below 2^64, got '18446744073709551616'",
        ),
        (parse_time, "10", "expected a time such as 200ms, 1s or 2m, got '10'"),
        (parse_time, "1 day", "expected a time such as 200ms, 1s or 2m, got '1 day'"),
        (
            parse_time,
            "0.5ns",
            "expected a whole number of base units in a time such as 200ms, 1s or 2m, got '0.5ns'",
        ),
        (parse_rate, "940M", "expected a rate such as 940Mb/s or 1.5Gb/s, got '940M'"),
        (
            parse_share,
            "95 per cent",
            "expected a percentage such as 95% or 2.5%, got '95 per cent'",
        ),
    ],
)
def test_what_is_refused_says_what_was_expected(parse: object, word: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse(word)  # type: ignore[operator]


@pytest.mark.parametrize("parse", [parse_size, parse_time, parse_rate, parse_share])
def test_a_fraction_beyond_any_precision_is_not_rounded(parse: object) -> None:
    """0.99...9 with more digits than Decimal's context is no whole number; thousands of digits are
    no number at all.
    """
    for word in (
        "0." + "9" * 40 + ("s" if parse is parse_time else "b/s" if parse is parse_rate else ""),
        "9" * 5000,
    ):
        if parse is parse_share and len(word) < 100:
            continue
        with pytest.raises(ValueError, match=r"^expected a "):
            parse(word)  # type: ignore[operator]


@given(NUMBERS)
def test_size_round_trip(number: int) -> None:
    assert number == parse_size(format_size(number))


@given(NUMBERS)
def test_time_round_trip(number: int) -> None:
    assert number == parse_time(format_time(number))


@given(NUMBERS)
def test_rate_round_trip(number: int) -> None:
    assert number == parse_rate(format_rate(number))


@given(NUMBERS)
def test_size_is_spelled_as_short_as_its_units_allow(number: int) -> None:
    spellings = [
        f"{number // f}{u}"
        for u, f in (
            ("", 1),
            ("K", 1024),
            ("kB", 1000),
            ("M", 1024**2),
            ("MB", 10**6),
            ("G", 1024**3),
            ("GB", 10**9),
            ("T", 1024**4),
            ("TB", 10**12),
        )
        if number % f == 0 and (number or u == "")
    ]
    assert len(format_size(number)) == min(map(len, spellings))


@given(st.integers(1, 99), st.integers(0, 99))
def test_share_is_exact_to_the_last_digit(whole: int, hundredths: int) -> None:
    assert (whole * 100 + hundredths) / 10_000 == parse_share(f"{whole}.{hundredths:02d}%")


@pytest.mark.parametrize(
    ("parse", "pattern"),
    [
        (parse_size, SIZE_PATTERN),
        (parse_time, TIME_PATTERN),
        (parse_rate, RATE_PATTERN),
        (parse_share, SHARE_PATTERN),
    ],
)
@given(word=st.from_regex(r"[0-9]{0,3}(\.[0-9]{1,2})?[ ]?[a-zA-Z/%µ]{0,4}", fullmatch=True))
def test_no_word_is_read_that_the_schema_refuses(parse: object, pattern: str, word: str) -> None:
    try:
        parse(word)  # type: ignore[operator]
    except ValueError:
        return
    assert re.search(pattern, word)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, "0"),
        (65536, "64K"),
        (64000, "64kB"),
        (1001, "1001"),
        (10**10, "10GB"),
        (2**34, "16G"),
        (10**12, "1TB"),
    ],
)
def test_size_in_words(number: int, expected: str) -> None:
    assert expected == format_size(number)


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0, "0"), (1023, "1023"), (184320, "180K"), (1_300_000, "1.2M"), (30 << 30, "30G")],
)
def test_size_for_people(size: int, expected: str) -> None:
    assert rounded_size(size) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, "0s"), (1, "1ns"), (10**9, "1s"), (90 * 10**9, "90s"), (120 * 10**9, "2m")],
)
def test_time_in_words(number: int, expected: str) -> None:
    assert expected == format_time(number)


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, "0 s"), (48.4, "48 s"), (125, "2 min 05 s"), (4320, "1 h 12 min")]
)
def test_duration_for_people(seconds: float, expected: str) -> None:
    assert expected == format_duration(seconds)


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (0, "0 runs were lost, and count"),
        (1, "1 run was lost, and counts"),
        (2, "2 runs were lost, and count"),
    ],
)
def test_words_agree_with_their_number(n: int, said: str) -> None:
    assert said_of(n, "run", "were lost, and count") == said
