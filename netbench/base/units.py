"""Sizes, rates, times and shares as text; the only place that knows a unit's suffix.

Sizes follow dd(1): `K M G T` are powers of 1024, `kB MB GB TB` powers of 1000, `KiB MiB GiB TiB`
powers of 1024. Rates are decimal (`940Mb/s`, `1.2Gbit/s`); `B/s` counts bytes. Times: `ns us ms s m
h`. Parsers return base units (bytes, bits/s, nanoseconds, fraction) and raise ValueError with what
was expected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*([A-Za-zµ/%]*)")
_SIZES = {"": 1, "c": 1, "B": 1}
for _i, _p in enumerate("KMGTP", 1):
    _SIZES |= {_p: 1024**_i, f"{_p}iB": 1024**_i, f"{_p}B": 1000**_i}
_SIZES |= {"k": 1024, "m": 1024**2, "g": 1024**3, "kB": 1000}
_SIZES["KB"] = 1000
_TIMES = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_RATES: dict[str, int] = {}
for _p, _f in (("", 1), ("k", 10**3), ("K", 10**3), ("M", 10**6), ("G", 10**9), ("T", 10**12)):
    _RATES |= dict.fromkeys((f"{_p}b/s", f"{_p}bit/s", f"{_p}bits/s", f"{_p}bps"), _f)
    _RATES[f"{_p}B/s"] = 8 * _f
_U64 = 2**64 - 1


_DIGITS_MAX = 60
LARGEST = 1e100
"""Of a number that somebody prints: many of them have a sum, and that of their squares."""


def _pattern(units: Iterable[str]) -> str:
    return rf"^\s*([0-9]+(\.[0-9]+)?|\.[0-9]+)\s*({'|'.join(units)})\s*$"


# Regular expressions of the words below, for the campaign file's JSON Schema (ECMA-262 dialect).
SIZE_PATTERN = _pattern(_SIZES)
TIME_PATTERN = "^\\s*0\\s*$|" + _pattern(_TIMES)
RATE_PATTERN = _pattern(_RATES)
SHARE_PATTERN = _pattern(("", "%"))


def _number(text: str, units: Iterable[str], what: str) -> tuple[Fraction, str]:
    from fractions import Fraction  # it costs every start of the command line a tenth

    match = _NUMBER.fullmatch(text.strip())
    if match is None or match[2] not in units or len(match[1]) > _DIGITS_MAX:
        raise ValueError(f"expected a {what}, got {text!r}")
    return Fraction(match[1]), match[2]


def _split(text: str, units: dict[str, int], what: str, example: str) -> int:
    number, unit = _number(text, units, f"{what} such as {example}")
    exact = number * units[unit]
    if exact.denominator != 1:
        raise ValueError(
            f"expected a whole number of base units in a {what} such as {example}, got {text!r}"
        )
    if exact > _U64:
        raise ValueError(f"expected a {what} below 2^64, got {text!r}")
    return int(exact)


def parse_size(text: str) -> int:
    """Bytes in a size as dd(1) reads it: `64K` = 65536, `64kB` = 64000. Errors: ValueError."""
    return _split(text, _SIZES, "size", "64K, 1M or 300kB")


def parse_time(text: str) -> int:
    """Nanoseconds in a time: `200ms`, `1s`, `2m`; no bare number but 0. Errors: ValueError."""
    if text.strip() == "0":
        return 0
    return _split(text, _TIMES, "time", "200ms, 1s or 2m")


def parse_rate(text: str) -> int:
    """Bits per second in a rate: `940Mb/s`, `1.5Gbit/s`, `100MB/s` (bytes). Errors: ValueError."""
    return _split(text, _RATES, "rate", "940Mb/s or 1.5Gb/s")


def parse_share(text: str) -> float:
    """A fraction from a percentage: `95%` = 0.95; `0.95` is accepted too. Errors: ValueError."""
    number, unit = _number(text, ("", "%"), "percentage such as 95% or 2.5%")
    return float(number / 100 if unit == "%" else number)


# No unit begins or goes on with what may be more of the number: 1,234,567; 12:34; 0x1F; 3 / 4.
_PRINTED = re.compile(
    r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*((?:10\^\d+)?[^\W\d_][^\d,]*|[%/°][^\d,]*|)"
)
_AMOUNT = re.compile(r"(?:([kKMGTP])(i?)|10\^(\d{1,2}))?(b|bits?|B|[Bb]ytes?)", re.ASCII)
_PER_SECOND = re.compile(r"(.*?)(?:/(?:s|secs?|seconds?)|ps)")
_PRINTED_TIMES = _TIMES | {
    "μs": 10**3,
    "min": 60 * 10**9,
    **{
        f"{prefix}sec{s}": 10**power
        for prefix, power in (("", 9), ("m", 6), ("u", 3), ("n", 0))
        for s in ("", "s")
    },
    "seconds": 10**9,
}


def printed(text: str) -> tuple[float, str]:
    """The number and the unit of a quantity in the output of a program. Errors: ValueError."""
    match = _PRINTED.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"expected a number, got {text[:80]!r}")
    return _finite(float(match[1]), text), match[2].rstrip()


def _finite(number: float, text: str) -> float:
    """The number. Errors: ValueError where it is beyond all that a float holds."""
    if not abs(number) <= LARGEST:
        raise ValueError(f"expected a number below 1e100, got {text[:40]!r}")
    return number


def _amount(unit: str) -> tuple[float, bool]:
    """How many bits or bytes a unit of data is, and whether bytes. Before `Byte` a prefix is
    1024-based, as iperf prints it; before `b`, `bit` and `B` 1000-based. Errors: ValueError.
    """
    match = _AMOUNT.fullmatch(unit)
    if match is None:
        raise ValueError(f"expected a unit such as Mbits, MB or MBytes, got {unit!r}")
    prefix, binary, power, noun = match.groups()
    of_bytes = noun[0] == "B" or noun.startswith("byte")
    if power:
        return 10.0 ** int(power), of_bytes
    base = 1024 if binary or (of_bytes and noun != "B") else 1000
    return float(base ** ("KMGTP".index(prefix.upper()) + 1) if prefix else 1), of_bytes


def times(unit: str, other: str) -> float | None:
    """How many of another unit a printed one is, where they differ by a prefix: `Mreq/s` is 1000
    `Kreq/s`; None where they do not.
    """
    factors, theirs = _factors(unit), _factors(other)
    return next((factors[noun] / theirs[noun] for noun in factors if noun in theirs), None)


def _factors(unit: str) -> dict[str, float]:
    """What a unit may be: of which noun how many; as it stands, and behind a prefix."""
    parts = re.fullmatch(r"([kKMGTP])(i(?=[Bb]|$))?(.*)", unit, re.DOTALL)
    if parts is None:
        return {unit: 1.0}
    prefix, binary, noun = parts.groups()
    return {unit: 1.0, noun: (1024.0 if binary else 1000.0) ** ("KMGTP".index(prefix.upper()) + 1)}


def printed_rate(text: str) -> float:
    """Bits per second in a rate as programs print it: `9.4 Gbits/sec`, `941.2 10^6bits/s`, `112
    MB/s`, `112 MBytes/sec` (1024-based, as iperf has it), `9.4Gbps`. Errors: ValueError.
    """
    number, unit = printed(text)
    match = _PER_SECOND.fullmatch(unit)
    if match is None or number < 0:
        raise ValueError(f"expected a rate such as 9.4 Gbits/sec, got {text!r}")
    factor, of_bytes = _amount(match[1])
    return _finite(number * factor * (8 if of_bytes else 1), text)


def printed_size(text: str) -> int:
    """Bytes in a size as programs print it: `1073741824`, `1.07 GB`, `1.00 GBytes` (1024-based);
    alone K, M and G are 1024-based. Errors: ValueError.
    """
    number, unit = printed(text)
    factor, of_bytes = (float(_SIZES[unit]), True) if unit in _SIZES else _amount(unit)
    if not of_bytes or not 0 <= number * factor < 2**63:
        raise ValueError(f"expected a number of bytes, got {text!r}")
    return round(number * factor)


def printed_time(text: str) -> float:
    """Seconds in a time as programs print it: `10.00`, `23.1 us`, `4 msec`. Errors: ValueError."""
    return printed_microseconds(text) / 1e6


def printed_microseconds(text: str) -> float:
    """As printed_time, in µs: what was printed in µs is not rounded."""
    number, unit = printed(text)
    if unit and unit not in _PRINTED_TIMES:
        raise ValueError(f"expected a time such as 23.1 us, got {text!r}")
    return _finite(number * float(_PRINTED_TIMES[unit or "s"]) / 1e3, text)


def format_size(size: int) -> str:
    """The shortest exact dd(1) spelling of a number of bytes: `64K`, `10GB`, `1001`."""
    spellings = [str(size)]
    for suffix in ("T", "G", "M", "K", "TB", "GB", "MB", "kB"):
        if size and size % _SIZES[suffix] == 0:
            spellings.append(f"{size // _SIZES[suffix]}{suffix}")
    return min(spellings, key=len)


def rounded_size(size: int) -> str:
    """A number of bytes in two or three digits: 184320 -> `180K`, 1300000 -> `1.2M`."""
    for suffix in ("T", "G", "M", "K"):
        if size >= _SIZES[suffix]:
            rounded = size / _SIZES[suffix]
            return f"{rounded:.1f}{suffix}" if rounded < 10 else f"{rounded:.0f}{suffix}"
    return str(size)


def format_time(ns: int) -> str:
    """The shortest exact spelling of a time in nanoseconds, of `1s`, `90s`, `2m` and the like."""
    return _exact(ns, _TIMES, ("h", "m", "s", "ms", "us", "ns")) or "0s"


def format_duration(seconds: float) -> str:
    """A duration as text, rounded: `48 s`, `2 min 05 s`, `1 h 12 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def format_rate(bits: int) -> str:
    """The shortest exact spelling of bits per second: 940_000_000 -> `940Mb/s`."""
    return _exact(bits, _RATES, ("Tb/s", "Gb/s", "Mb/s", "kb/s")) or f"{bits}b/s"


def _exact(number: int, units: Mapping[str, int], suffixes: Iterable[str]) -> str:
    """A number by the first of these units that it is a multiple of; "" where it is of none."""
    fitting = (suffix for suffix in suffixes if number and number % units[suffix] == 0)
    return next((f"{number // units[suffix]}{suffix}" for suffix in fitting), "")


def count(n: int, noun: str) -> str:
    """`1 cell`, `3 cells`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def listed(texts: Sequence[str], most: int, separator: str = "; ") -> str:
    """The first texts in a row; the rest are counted: `a; b; and 3 more`, `a, b and 3 more`."""
    first = separator.join(texts[:most])
    if len(texts) <= most:
        return first
    return f"{first}{'; and' if separator == '; ' else ' and'} {len(texts) - most} more"


_SINGULAR = {
    "are": "is",
    "were": "was",
    "have": "has",
    "count": "counts",
    "lie": "lies",
    "their": "its",
}


def said_of(n: int, noun: str, verb: str) -> str:
    """`3 cells have fewer runs`; of one `1 cell has fewer runs`: `verb` changes with the number."""
    words = [_SINGULAR.get(word, word) if n == 1 else word for word in verb.split(" ")]
    return f"{count(n, noun)} {' '.join(words)}"
