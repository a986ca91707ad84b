"""Two results: Welch's test against scipy's, which cells are the same, what differs; and gates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from netbench.read.campaigns import compare_results
from netbench.read.gates import judge, parse
from netbench.read.load import load
from netbench.read.matching import Matching, differences, match
from netbench.read.result import Result
from netbench.stats.comparison import Comparison
from tests.support.synthetic import Record, Synth, failed

TWO = ("snd>rcv",)
SENDS = {"send": ("readwrite", "sendfile")}


def made(folder: Path, **fields: object) -> Result:
    return load(Synth(**{"factors": SENDS, "pairs": TWO, **fields}).write(folder))  # type: ignore[arg-type]


def written(folder: Path, text: str, **fields: object) -> Result:
    """A result whose campaign says more."""
    made(folder, **fields)
    (folder / "campaign.yaml").write_text(f"netbench: 1\nname: x\n{text}")
    return load(folder)


def both(a: Result, b: Result, margin: float | None = None) -> list[Comparison]:
    return compare_results(a, b, match(a, b).matches, "throughput", margin)


def faster(factors: Mapping[str, str]) -> tuple[float, float, float]:
    return {"readwrite": 18.0, "sendfile": 33.3}[factors["send"]], 0.5, 0.6


def test_two_cells_are_one_family(tmp_path: Path) -> None:
    a, b = made(tmp_path / "a"), made(tmp_path / "b", seed=3, truth=faster)
    same, more = both(a, b)
    assert (same.context, more.context) == ({"send": "readwrite"}, {"send": "sendfile"})
    first, second = sorted((same, more), key=lambda c: c.p)
    assert (first.corrected, second.corrected) == (pytest.approx(0.975), pytest.approx(0.95))
    assert more.sentence.startswith("B moves 1.2% more than A, 95% interval")


def test_one_campaign_each_gives_intervals_and_no_verdict(tmp_path: Path) -> None:
    a, b = made(tmp_path / "a"), made(tmp_path / "b", seed=3, truth=faster)
    for c in both(a, b, margin=0.5):  # the margin would make all equivalent, the runs one better
        assert (c.verdict, c.earlier) == ("inconclusive", 0)
        assert c.low < c.ratio < c.high
        assert c.sentence.endswith(
            ", unpaired: inconclusive, one campaign each cannot tell a change from what two"
            " campaigns differ by"
        )


def test_boots_are_the_unit_where_both_have_several(tmp_path: Path) -> None:
    fields = {"factors": {"send": ("sendfile",)}, "between": 0.01}
    a = made(tmp_path / "a", runs=12, boots=4, **fields)
    b = made(tmp_path / "b", runs=10, boots=5, seed=3, **fields)
    (found,) = both(a, b)
    means = [np.log(x.ok["throughput"]).groupby(x.ok["boot"]).mean() for x in (b, a)]
    assert found.p == pytest.approx(scipy.stats.ttest_ind(*means, equal_var=False).pvalue)
    assert (found.unit, found.n, found.against) == ("boot", 5, 4)


def refused(record: Record) -> Record:
    return failed(record, "refused", "no") if record["factors"]["send"] == "sendfile" else record


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        (
            {"runs": 12},
            {"runs": 12, "boots": 4, "truth": faster},
            ["A has one boot and B 4: how far boots of A lie apart is not known"] * 2,
        ),
        (
            {"edit": refused},
            {"runs": 1},
            ["one run has no interval", "no run of A has a value here"],
        ),
    ],
)
def test_what_cannot_be_compared_says_why(
    tmp_path: Path, a: dict[str, object], b: dict[str, object], why: list[str]
) -> None:
    found = both(made(tmp_path / "a", **a), made(tmp_path / "b", **b))
    assert [c.why for c in found] == why
    assert all(math.isnan(c.low) for c in found)


# --- which cells are the same ---


def pairs_of(found: Matching) -> set[tuple[str, str]]:
    return {(m.a[0], m.b[0]) for m in found.matches}


PINNED = {"send": ("readwrite", "sendfile"), "pin": ("none", "apart")}


def test_cells_are_matched_by_their_ids_and_a_level_that_one_lacks_is_said(tmp_path: Path) -> None:
    found = match(made(tmp_path / "a", factors=PINNED), made(tmp_path / "b", factors=PINNED))
    assert {x for x, _ in pairs_of(found)} == {x for _, x in pairs_of(found)}
    assert (len(found.matches), found.notes) == (4, ())
    less = made(tmp_path / "less", factors={"send": ("readwrite", "splice")})
    found = match(less, made(tmp_path / "more"))
    assert pairs_of(found) == {("send=readwrite", "send=readwrite")}
    assert found.notes == ("only in A: send=splice", "only in B: send=sendfile")


def test_a_factor_that_one_alone_swept_is_at_the_level_that_the_other_wrote(tmp_path: Path) -> None:
    a = made(tmp_path / "a", factors=PINNED)
    found = match(a, written(tmp_path / "b", "transfer: {pin: apart}\n"))
    assert pairs_of(found) == {(f"send={send},pin=apart", f"send={send}") for send in SENDS["send"]}
    assert found.matches[0].context == {"send": "readwrite", "A's pin": "apart"}
    said = "; ".join(found.notes)
    assert "pin was swept in A alone; B was run with apart" in said
    assert "only in A: send=readwrite,pin=none" in said


def test_without_its_level_each_is_compared(tmp_path: Path) -> None:
    found = match(made(tmp_path / "a"), made(tmp_path / "b", factors=PINNED))
    assert pairs_of(found) == {
        (f"send={s}", f"send={s},pin={p}") for s in SENDS["send"] for p in PINNED["pin"]
    }
    assert {m.context["B's pin"] for m in found.matches} == {"none", "apart"}
    assert "A does not say its level" in found.notes[0]


def test_when_both_swept_something_alone_nothing_is_guessed(tmp_path: Path) -> None:
    a = made(tmp_path / "a", factors=PINNED)
    found = match(a, made(tmp_path / "b", factors={**SENDS, "tso": ("on", "off")}))
    assert found.matches == ()
    assert any("of which several could be meant" in note for note in found.notes)


def test_a_key_that_include_gave_a_cell_is_the_same_in_both(tmp_path: Path) -> None:
    a, b = (made(tmp_path / name, factors=PINNED) for name in "ab")
    a, b = (replace(each, plan=replace(each.plan, swept=("send",))) for each in (a, b))
    assert [m.context["pin"] for m in match(a, b).matches] == ["none", "apart"] * 2
    assert match(a, made(tmp_path / "none")).matches == ()
    found = match(a, written(tmp_path / "c", "transfer: {pin: apart}\ncommand: {x: {apply: a}}\n"))
    assert pairs_of(found) == {(f"send={send},pin=apart", f"send={send}") for send in SENDS["send"]}
    other = written(tmp_path / "d", "transfer: {pin: apart}\ncommand: {x: {apply: b}}\n")
    assert [d.what for d in differences(load(tmp_path / "c"), other)] == ["command.x"]


def test_only_pairs_may_have_other_names(tmp_path: Path) -> None:
    a, b = (made(tmp_path / name, pairs=pairs) for name, pairs in (("a", TWO), ("b", ("x>y",))))
    found = match(a, b)
    assert [(m.a[1], m.b[1]) for m in found.matches] == [("snd>rcv", "x>y")] * 2
    assert found.notes == ("the pair snd>rcv of A is compared with x>y of B",)
    found = match(*(made(tmp_path / p[0], pairs=("snd>rcv", p)) for p in ("c>d", "e>f")))
    assert {m.pair for m in found.matches} == {"snd>rcv"}
    assert found.notes == ("only in A: the pairs c>d", "only in B: the pairs e>f")


# --- what differs ---


def test_facts_that_must_match_and_words_of_the_campaign_are_told(tmp_path: Path) -> None:
    facts = {"kernel": "6.19.0", "load": "9.9", "tcp_sack": "0"}
    a = written(
        tmp_path / "a",
        "transfer: {chunk: 8K, pin: none, source: {file: /home/anna/x}}\nkernels: {x: {deb: /x}}\n",
        facts={h: {"tcp_sack": "1"} for h in ("snd", "rcv")},
    )
    b = written(
        tmp_path / "b",
        "transfer: {chunk: 64K, pin: none, source: zero}\nsettings: {mtu: 9000}\n",
        facts={"snd": facts, "rcv": {"tcp_sack": "0"}},
    )
    found = {d.what: (d.where, d.a, d.b) for d in differences(a, b)}
    assert found == {
        "kernel": ("snd", "6.18.1", "6.19.0"),
        "tcp_sack": ("snd, rcv", "1", "0"),
        "transfer.chunk": ("campaign", "8K", "64K"),
        "transfer.source": ("campaign", "differs", "differs"),
        "settings.mtu": ("campaign", "not written", "9000"),
        "kernels.x": ("campaign", "differs", "differs"),
    }


def test_what_a_host_had_as_it_is_may_differ(tmp_path: Path) -> None:
    def reading(value: str) -> Callable[[Record], Record]:
        def edit(record: Record) -> Record:
            for side in ("sender", "receiver"):
                if (note := record["settings"][side]["mtu"])["asked"] == "as_is":
                    note["read"] = value
            return record

        return edit

    mtu = {"factors": {"mtu": ("as_is", "9000")}}
    a, b = (made(tmp_path / v, edit=reading(v), **mtu) for v in ("1500", "1400"))
    wanted = {("sender", "mtu as_is", "1500", "1400"), ("receiver", "mtu as_is", "1500", "1400")}
    assert {(d.where, d.what, d.a, d.b) for d in differences(a, b)} == wanted
    assert differences(a, made(tmp_path / "c", edit=reading("1500"), **mtu)) == []


def test_swept_kernels_that_are_the_same_are_no_difference(tmp_path: Path) -> None:
    fields = {"factors": {"kernel": ("x", "y")}, "boots": 2}
    a, b = made(tmp_path / "a", **fields), made(tmp_path / "b", seed=3, **fields)
    assert differences(a, b) == []
    other = made(tmp_path / "c", kernels={"y": {"kernel_build": "#2"}}, **fields)
    assert [(d.what, d.a, d.b) for d in differences(a, other)] == [
        ("kernel_build", "#1 SMP x or #1 SMP y", "#1 SMP x or #2")
    ]


# --- gates ---


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("throughput < -0.02", ("throughput", True, -0.02)),
        ("sender_demand>5%", ("sender_demand", False, 0.05)),
        ("system_cpu.procstat>+0.5 %", ("system_cpu.procstat", False, 0.005)),
        ("throughput<.5%", ("throughput", True, 0.005)),
        ("retransmits>100%", ("retransmits", False, 1.0)),
        ("sender_cpu.toy<0", ("sender_cpu.toy", True, 0.0)),  # any meter may be named
    ],
)
def test_gates_are_read(text: str, gate: tuple[str, bool, float]) -> None:
    found = parse(text)
    assert (found.metric, found.below, found.limit) == (gate[0], gate[1], pytest.approx(gate[2]))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("throughput", "write METRIC"),
        ("throughput<two", "write METRIC"),
        ("", "write METRIC"),
        ("throughput<=2%", "write METRIC"),
        ("throughput<-2%%", "write METRIC"),
        ("<-2%", "write METRIC"),
        ("throughput<-2% ; throughput>1%", "write METRIC"),
        ("throughput<-100%", "a metric cannot fall by 100%"),
        ("throuhput<-2%", "did you mean throughput"),
        ("throughput.procstat<-2%", "did you mean throughput"),
    ],
)
def test_what_is_no_gate_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse(text)


def compared_to(low: float, high: float, **more: object) -> Comparison:
    empty = Comparison("x", "new", "old", {}, "a>b", "throughput", 9, ratio=1)
    return empty.but(low=low, high=high, **more)


@pytest.mark.parametrize(
    ("gate", "low", "high", "falls"),
    [
        ("throughput<-2%", 0.95, 0.97, True),
        ("throughput<-2%", 0.95, 0.985, False),
        ("throughput<-2%", 0.99, 1.05, False),
        ("throughput>5%", 1.06, 1.10, True),
        ("throughput>5%", 1.04, 1.10, False),
        ("throughput>5%", 0.5, 0.6, False),
    ],
)
def test_a_gate_falls_where_the_whole_interval_lies_past_it(
    gate: str, low: float, high: float, falls: bool
) -> None:
    family = {"throughput": [compared_to(low, high), compared_to(1.0, 1.0)]}
    outcome = judge(parse(gate), family)
    assert (len(outcome.fell), outcome.held) == ((1, 1) if falls else (0, 2))


def test_what_has_no_interval_is_not_judged() -> None:
    unknown = compared_to(math.nan, math.nan, why="one boot has no interval")
    outcome = judge(parse("throughput<-2%"), {"throughput": [unknown]})
    assert (outcome.fell, outcome.held, outcome.unjudged) == ((), 0, (unknown,))
    assert judge(parse("retransmits<-2%"), {}).held == 0
