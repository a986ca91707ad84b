"""Searches for the patterns of a campaign, in a process of their own.

A regular expression of Python may take for ever, and no other thread runs meanwhile: heartbeats
would stop, and no deadline would hold. The process ends by the kernel's clock (alarm(2)).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SECONDS = 5  # that a search may take
SEARCHED = 32 * 1024  # characters at the end of an output that are searched
_PROGRAM = """\
import json, re, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
seconds, patterns, texts = json.load(sys.stdin)
signal.alarm(seconds)
for pattern in patterns:
    match = next(filter(None, (re.search(pattern, text) for text in texts)), None)
    print(json.dumps(match and [match[0], match.groupdict()]), flush=True)
"""


@dataclass(frozen=True)
class Match:
    """What a pattern matched, and what its named groups hold (None: nothing)."""

    text: str
    groups: Mapping[str, str | None]


def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern as Python reads it. Errors: ValueError."""
    try:
        return re.compile(pattern)
    except (re.error, OverflowError) as error:
        raise ValueError(str(error)) from error
    except RecursionError as error:
        raise ValueError("its groups are nested too deeply") from error


def search(patterns: Sequence[str], *texts: str) -> list[Match | None]:
    """Of each pattern the first match in what the texts end with. Errors: ValueError where that
    takes longer than SECONDS.
    """
    asked = json.dumps([SECONDS, [*patterns], [text[-SEARCHED:] for text in texts]])
    argv = (sys.executable, "-I", "-S", "-c", _PROGRAM)
    done = subprocess.run(argv, input=asked, capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or len(found) < len(patterns):
        raise ValueError(
            f"the search for {patterns[len(found)]!r} took more than {SECONDS} s; write a pattern"
            " in which nothing that repeats is repeated, as in (a+)+"
        )
    return [match and Match(*match) for match in found]
