"""Wrong campaign files: every message, word by word, in campaign/errors.txt: after `=== what is
wrong` the file (with version and name, unless a base in brackets says otherwise), then its messages
after `=> `. `python -m tests.unit.test_campaign_errors` writes them anew.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from netbench.base.errors import CampaignError
from netbench.campaign import parse
from tests.support.hand_catalogue import catalogue

TABLE = Path(__file__).with_name("campaign") / "errors.txt"
H = "netbench: 1\nname: x\n"
RACKS = "hosts:\n  n[1-3]: local\n  m[1-2]: local\ngroups:\n  rack1: n[1-3]\n  rack2: [m1, m2]\n"
BASES = {None: H, "whole file": "", "racks": H + RACKS}
CLOSING = {
    "throughput",
    *("sender_cpu", "receiver_cpu", "system_cpu"),
    *("sender_demand", "receiver_demand", "system_demand"),
}
MANY = ", ".join(f"{i}K" for i in range(1, 102))
DEEP = f"{'(' * 3000}(?P<value>.){')' * 3000}"
FLEET = f"{H}hosts: {{'n[001-400]': local}}\n"
LONG = [
    *(
        (f'{H}about: "abc {mark} def"\n', f"3: expected text, got the control character {name}")
        for mark, name in (
            (mark, f"U+{ord(mark):04X}") for mark in "\u202e\u2069\u200f\u061c\u200b\u2028"
        )
    ),
    (
        f"netbench: 1\nname: {'a' * 101}\n",
        "2: name: expected a name of at most 100 letters, digits, dots, dashes and underscores, such"
        f" as sosend-2, got '{'a' * 75}...'",
    ),
    (
        f"{H}tools: {{m: {{client: [a], captures: {{p99: '{DEEP}'}}}}}}\n",
        "3: tools.m.captures: expected a regular expression with the named group value, got"
        f" '{DEEP[:200]}...': its groups are nested too deeply",
    ),
    (
        f"{H}about: {'[' * 40}{']' * 40}\n",
        "3: about[0][0]: expected at most 32 levels of nesting, got more",
    ),
    (
        f"{H}sweep:\n  chunk: [{MANY}]\n  receive_chunk: [{MANY}]\n",
        "3: sweep: expected at most 10000 cells, got 10201",
    ),
    (FLEET + "pairs: all\n", "4: pairs: expected at most 100000 pairs, got more"),
    (
        f"{FLEET.replace('400', '300')}pairs: all\nsweep: {{chunk: [4K, 8K]}}\n",
        "4: pairs: expected at most 100000 pairs in all cells, got 2 cells, each of 89700 pairs",
    ),
]


def table() -> list[tuple[str, str, list[str]]]:
    """The head, the file and the messages of each case."""
    cases = []
    for case in TABLE.read_text().removeprefix("=== ").split("\n=== "):
        head, *lines = case.splitlines()
        base = re.search(r" \((.*)\)\Z", head)
        written = "".join(f"{line}\n" for line in lines if not line.startswith("=> "))
        said = [line.removeprefix("=> ") for line in lines if line.startswith("=> ")]
        cases.append((head, BASES[base[1] if base else None] + written, said))
    return cases


def errors(text: str) -> list[str]:
    """What is wrong with a file, without the file's name."""
    with pytest.raises(CampaignError) as caught:
        parse(text, "c.yaml", (), catalogue())
    assert caught.value.exit_code == 2
    return [line.removeprefix("c.yaml:") for line in str(caught.value).splitlines()]


@pytest.mark.parametrize(
    ("text", "expected"), [pytest.param(text, said, id=head) for head, text, said in table()]
)
def test_a_wrong_file_is_told_what_is_wrong(text: str, expected: list[str]) -> None:
    assert errors(text) == expected


@pytest.mark.parametrize(("text", "expected"), LONG, ids=[said for _, said in LONG])
def test_a_file_that_is_too_much_is_refused(text: str, expected: str) -> None:
    assert errors(text) == [expected]


@pytest.mark.parametrize("name", [*sorted(CLOSING), "retransmits", "steps"])
def test_a_metric_closes_cells_or_is_refused_by_name(name: str) -> None:
    text = f"{H}meters: [rusage, soak]\nrepeat: {{metrics: [{name}]}}\n"
    if name in CLOSING:
        assert parse(text, "c.yaml", (), catalogue()).repeat.metrics == (name,)
        return
    (message,) = errors(text)
    assert "expected a metric that can close cells (throughput, sender_cpu" in message
    assert f"got '{name}'" in message


def rewrite() -> None:
    """Write the table with the messages of today."""
    cases = TABLE.read_text().removeprefix("=== ").split("\n=== ")
    written = []
    for case, (_, text, _) in zip(cases, table(), strict=True):
        lines = [line for line in case.splitlines() if not line.startswith("=> ")]
        written.append("\n".join([*lines, *(f"=> {message}" for message in errors(text))]))
    TABLE.write_text("".join(f"=== {case}\n" for case in written))


if __name__ == "__main__":
    rewrite()
