"""Steps from a campaign: complete blocks, a stored seed, strata outermost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbench import campaign
from netbench.cli.plan import text as plan_text
from netbench.model import (
    Campaign,
    Cell,
    Factor,
    Host,
    Lab,
    Link,
    Pair,
    ProfileSpec,
    Repeat,
    SettingLevel,
    Transfer,
)
from netbench.plan.plan import Apply, Plan, ProfileRun, Run, Step, Unit, Verify, run_seconds
from netbench.plan.plan_json import plan_json
from netbench.plan.rounds import rounds, rounds_of


def make(sweep: dict[str, list[str]], seed: int = 1, pairs: int = 1, **more: object) -> Campaign:
    cells: list[dict[str, str]] = [{}]
    for name, levels in sweep.items():
        cells = [cell | {name: level} for cell in cells for level in levels]
    return Campaign(
        name="c",
        about="",
        hosts={"a": Host("a")},
        pairs=tuple(Pair("a", f"b{i}") for i in range(pairs)),
        factors=tuple(Factor(k, tuple(v), k in ("mtu", "kernel")) for k, v in sweep.items()),
        cells=tuple(Cell(",".join(map("=".join, c.items())), c, Transfer()) for c in cells),
        repeat=Repeat(min=3, max=5),
        seed=seed,
        meters=("rusage",),
        **more,  # type: ignore[arg-type]
    )


def always(key: object) -> bool:
    return True


def runs(plan: Plan, block: int) -> list[Run]:
    return [step for step in steps_of(plan, block) if isinstance(step, Run)]


def steps_of(plan: Plan, block: int, *more: Any) -> list[Step]:
    return list(chain.from_iterable(plan.block(block, always, *more)))


names = st.text("abcdefgh", min_size=1, max_size=3)
sweeps = st.dictionaries(
    names,
    st.lists(st.text("xyz0123", min_size=1, max_size=4), min_size=1, max_size=4, unique=True),
    max_size=3,
)


@given(
    sweep=sweeps, seed=st.integers(0, 2**40), block=st.integers(0, 1000), pairs=st.integers(1, 3)
)
def test_every_block_runs_every_unit_once(
    sweep: dict[str, list[str]], seed: int, block: int, pairs: int
) -> None:
    plan = Plan(make(sweep, seed, pairs))
    found = [step.unit.key for step in runs(plan, block)]
    assert sorted(found) == sorted(unit.key for unit in plan.units)
    assert len(set(found)) == len(found)


def test_each_unit_has_every_place_in_the_order_about_equally_often() -> None:
    plan = Plan(make({"x": ["1", "2", "3", "4"]}))
    first = [runs(plan, block)[0].unit.cell.id for block in range(400)]
    assert all(60 < first.count(f"x={i}") < 140 for i in "1234")


def test_costly_factors_are_outermost() -> None:
    plan = Plan(make({"send": ["a", "b", "c"], "mtu": ["1500", "9000"]}))
    for block in range(10):
        order = [step.unit.cell.factors["mtu"] for step in runs(plan, block)]
        assert order in (["1500"] * 3 + ["9000"] * 3, ["9000"] * 3 + ["1500"] * 3)
    assert len({runs(plan, b)[0].unit.cell.factors["mtu"] for b in range(10)}) == 2


@pytest.mark.parametrize(
    ("more", "block", "kinds"),
    [
        ({}, 0, [Verify, Run, Verify, Run]),
        ({}, 1, [Run, Run]),
        ({"verify": False}, 0, [Run, Run]),
        ({"settings": {"mtu": SettingLevel("9000", "9000")}}, 1, [Apply, Run, Apply, Run]),
    ],
)
def test_verification_comes_once_and_settings_before_each_run(
    more: dict[str, Any], block: int, kinds: list[type]
) -> None:
    steps = steps_of(Plan(make({"x": ["1", "2"]}, **more)), block)
    assert [type(step) for step in steps] == kinds


def test_a_unit_that_closes_while_the_block_runs_is_not_run() -> None:
    plan = Plan(make({"x": ["1", "2", "3"]}))
    closed: set[tuple[str, str]] = set()
    ran: list[Unit] = []
    for (step,) in plan.block(0, lambda key: key not in closed):
        if isinstance(step, Verify):
            closed.add(step.unit.key)
        elif isinstance(step, Run):
            ran.append(step.unit)
    assert ran == []


def test_each_round_of_profiles_has_each_due_unit_once_in_an_order_of_its_own() -> None:
    plan = Plan(
        make({"mtu": ["1500", "9000"], "send": ["a", "b", "c"]}, profile=ProfileSpec("all"))
    )
    due = {(unit.key, number) for unit in plan.units for number in range(3)}
    steps = [step for step in plan.profiles(due, None, 4) if isinstance(step, ProfileRun)]
    assert {(step.unit.key, step.round) for step in steps} == due
    assert [step.round for step in steps] == [0] * 6 + [1] * 6 + [2] * 6
    assert {step.boot for step in steps} == {4}
    orders = [[step.unit.cell.id for step in steps if step.round == n] for n in range(3)]
    assert len({tuple(order) for order in orders}) > 1
    for order in orders:  # what resets a link changes once a round
        levels = [cell.split(",")[0] for cell in order]
        assert levels in (sorted(levels), sorted(levels, reverse=True))
    assert list(plan.profiles(due, None, 4)) == list(plan.profiles(due, None, 4))


def test_the_order_of_a_campaign_of_one_pair_is_that_of_earlier_versions() -> None:
    """Else `resume` would refuse their results."""
    plan = Plan(make({"x": [str(i) for i in range(8)]}))
    orders = ["".join(run.unit.cell.factors["x"] for run in runs(plan, block)) for block in (0, 1)]
    assert orders == ["02451376", "36124705"]
    assert {(run.round, run.beside) for run in runs(plan, 0)} == {(None, ())}


# --- several pairs ---


def of_pairs(text: str, sweep: dict[str, list[str]], **more: object) -> Campaign:
    """A campaign of pairs such as `a>b c>d` of hosts that are elsewhere."""
    pairs = tuple(Pair(*pair.split(">")) for pair in text.split())
    hosts = {name: Host(name, name) for pair in pairs for name in (pair.sender, pair.receiver)}
    return make(sweep, **more)._replace(hosts=hosts, pairs=pairs)  # type: ignore[arg-type]


RING = "a>b b>c c>d d>a"


def waves(plan: Plan, block: int = 0, **more: Any) -> list[tuple[str, list[str]]]:
    """The cell and the pairs of each wave of a block."""
    found = [w for w in plan.block(block, always, **more) if isinstance(w[0], Run)]
    assert all(len({step.unit.cell.id for step in wave}) == 1 for wave in found)
    return [(wave[0].unit.cell.id, [step.unit.pair.name for step in wave]) for wave in found]


def test_pairs_of_a_round_run_the_same_cell_side_by_side() -> None:
    plan = Plan(of_pairs(RING, {"x": ["1", "2", "3"]}))
    for block in range(5):
        assert sorted(waves(plan, block)) == [
            (f"x={x}", pairs) for x in "123" for pairs in (["a>b", "c>d"], ["b>c", "d>a"])
        ]
    assert waves(plan, 0) != waves(plan, 1)
    told = {(r.unit.pair.name, r.round, *(p.name for p in r.beside)) for r in runs(plan, 0)}
    first, second = {("a>b", 1, "c>d"), ("c>d", 1, "a>b")}, {("b>c", 2, "d>a"), ("d>a", 2, "b>c")}
    assert told == first | second
    assert plan_json(plan)["rounds"] == [["a>b", "c>d"], ["b>c", "d>a"]]


def test_plan_in_words_says_rounds_and_cuts_what_is_long() -> None:
    hosts = [f"n{n}" for n in range(40)]
    pairs = " ".join(f"{a}>{b}" for a in hosts for b in hosts if a < b)
    told = plan_text(Plan(of_pairs(pairs, {"x": ["1", "2"]}, verify=False)))
    assert " and 772 more" in " ".join(told.split())
    rounds = len(Plan(of_pairs(pairs, {})).rounds)
    assert f"\n{rounds} rounds of 20 pairs at most side by side" in told
    assert f"  and {2 * rounds - 40} more" in told
    assert len(told.splitlines()) < 100


def test_every_step_of_a_wave_comes_before_the_next_kind() -> None:
    plan = Plan(of_pairs("a>b c>d", {}, settings={"mtu": SettingLevel("9000", "9000")}))
    kinds = [[type(step) for step in steps] for steps in plan.block(0, always)]
    assert kinds == [[Apply, Apply], [Verify, Verify], [Run, Run]]


def test_hosts_that_are_found_on_one_kernel_are_in_rounds_of_their_own() -> None:
    plan = Plan(of_pairs("a>b c>d", {}))
    assert len(plan.rounds) == 1
    assert len(replace(plan, boot_ids=dict.fromkeys("abcd", "one")).rounds) == 2
    assert len(replace(plan, boot_ids={"a": "one", "b": "one", "c": "two", "d": "two"}).rounds) == 1
    local = plan.campaign._replace(hosts={name: Host(name) for name in "abcd"})
    assert len(Plan(local).rounds) == 2, "all of them are this machine"
    for kind, number in (("netns", 2), ("qemu", 1)):
        assert len(Plan(plan.campaign._replace(lab=Lab(kind))).rounds) == number


def test_estimated_time_counts_warmup_duration_blocks_and_profiles_and_overlap_once() -> None:
    plan = Plan(make({"x": ["1", "2"]}, verify=False))
    once = run_seconds(plan.units[0])
    assert once > 11
    assert plan.seconds() == pytest.approx((2 * 3 * once, 2 * 5 * once))
    assert Plan(make({"x": ["1", "2"]}, limit=10**10)).seconds() == (10, 10)
    for cells, least in (("all", True), ("changed", False)):
        spec = ProfileSpec(cells, 5 * 10**9, 997, 3)
        seconds = Plan(make({"x": ["1", "2"]}, verify=False, profile=spec)).seconds()
        assert (seconds[0] > plan.seconds()[0] + 30) == least
        assert seconds[1] > plan.seconds()[1] + 30
    apart, beside = (
        Plan(of_pairs("a>b c>d", {"x": ["1", "2"]}, overlap=overlap, verify=False)).seconds()
        for overlap in ("none", "round")
    )
    assert beside == pytest.approx((apart[0] / 2, apart[1] / 2))


def test_a_closed_unit_runs_along_while_another_of_its_wave_is_open() -> None:
    plan = Plan(of_pairs("a>b c>d e>f", {"x": ["1", "2"]}, verify=False))

    def is_open(key: tuple[str, str]) -> bool:
        return key == ("x=1", "a>b")

    def joins(key: tuple[str, str]) -> bool:
        return key[1] != "e>f"

    (wave,) = plan.block(3, is_open, joins=joins)
    assert [step.unit.key for step in wave] == [("x=1", "a>b"), ("x=1", "c>d")]
    (alone,) = plan.block(3, is_open)
    assert [step.unit.key for step in alone] == [("x=1", "a>b")]


def test_what_is_left_of_a_block_is_in_the_same_order_as_the_block() -> None:
    plan = Plan(of_pairs(RING, {"x": [str(n) for n in range(6)]}))
    ran = [step.unit.key for step in runs(plan, 4)]
    left = [key for n, key in enumerate(ran) if n not in (0, 3, 4)]
    rest = [step.unit.key for step in steps_of(plan, 4, sorted(left)) if isinstance(step, Run)]
    assert rest == left


def test_a_plan_of_250_pairs_asks_for_a_unit_when_its_turn_has_come() -> None:
    """Five hundred hosts at once are a row of `make bench PARTS=fleet`."""
    pairs = " ".join(f"h{n}>h{n + 1}" for n in range(0, 500, 2))
    plan = Plan(of_pairs(pairs, {"x": ["1", "2"], "y": ["1", "2"]}, verify=False))
    asked: list[tuple[str, str]] = []
    found = plan.block(99_999, lambda key: not asked.append(key))
    first = [step.unit.key for wave in islice(found, 3) for step in wave]
    assert len(first) == 3 * 250
    assert list(dict.fromkeys(asked)) == first
    assert len(list(found)) == 1


# The control of a comparison: which campaigns have one


FOUR = "sweep: {chunk: [1K, 2K, 4K, 8K]}\ncompare: {factor: chunk, baseline: 2K}\n"
TWO = "sweep: {chunk: [1K, 2K]}\ncompare: {factor: chunk, baseline: 2K}\n"


def parse(text: str, *sets: str, quick: bool = False) -> Campaign:
    return campaign.parse(f"netbench: 1\nname: c\n{text}", "c.yaml", sets, quick=quick)


def controls(text: str, *sets: str, quick: bool = False) -> list[str]:
    return [cell.id for cell in parse(text, *sets, quick=quick).cells if cell.control]


STREAMS = "sweep.streams=[1,2]"


@pytest.mark.parametrize(
    ("text", "sets", "expected"),
    [
        (FOUR, "", "chunk=2K"),  # a fifth of the runs
        (FOUR, "sweep.chunk=[1K,2K,4K]", ""),  # a quarter
        (TWO, "compare.control=true", "chunk=2K"),
        ("sweep: {chunk: [1K, 2K, 4K, 8K]}\n", "", ""),  # nothing is compared
        # One in each context of the other factors, where the baseline is, and is compared with.
        (FOUR, STREAMS, "chunk=2K,streams=1 chunk=2K,streams=2"),
        (f"{FOUR}exclude: [{{chunk: 2K, streams: 2}}]\n", STREAMS, "chunk=2K,streams=1"),
        (
            f"{TWO}exclude: [{{chunk: 1K, streams: 2}}]\n",
            f"{STREAMS} compare.control=on",
            "chunk=2K,streams=1",
        ),
        (
            f"{FOUR}include: [{{chunk: 2K, receive_chunk: 8K}}]\n",
            "",
            "chunk=2K,receive_chunk=8K",  # it has what include adds to the baseline
        ),
    ],
)
def test_controls_are_by_default_where_they_are_less_than_a_quarter_of_the_runs(
    text: str, sets: str, expected: str
) -> None:
    named = [f"{cell},control" for cell in expected.split()]
    assert controls(text, *sets.split()) == named
    assert controls(text, *sets.split(), quick=True) == named


def test_a_control_is_the_baseline_in_all_but_its_name() -> None:
    found = parse(FOUR)
    baseline, control = found.cells[1], found.cells[-1]
    assert control._replace(id=baseline.id, control=False) == baseline
    assert found.compare
    assert found.compare.control


def test_the_control_of_a_kernel_is_in_the_boots_of_its_baseline() -> None:
    text = (
        "sweep: {kernel: [a, b, c, d]}\ncompare: {factor: kernel, baseline: b}\n"
        "repeat: {min: 4, boots: 2}\n"
    )
    plan = Plan(parse(text))
    for block in range(plan.blocks or 0):
        boot = plan.boot(block)
        ran = [run.unit.cell.id for run in runs(plan, block)]
        assert boot
        expected = [f"kernel={boot.kernel}"] + ["kernel=b,control"] * (boot.kernel == "b")
        assert sorted(ran) == expected


# Rounds of pairs: nothing is used twice in one, and each pair is in the first that has room


HOSTS = [f"h{n}" for n in range(8)]

hosts = st.sampled_from(HOSTS)
pairs_of_hosts = st.lists(st.builds(Pair, hosts, hosts), max_size=20, unique=True)
kernels_of_hosts = st.dictionaries(hosts, st.sampled_from("xyz"), max_size=8)
links_of_hosts = st.dictionaries(
    st.sampled_from(["up", "down"]),
    st.builds(
        Link,
        st.lists(hosts, max_size=6, unique=True).map(tuple),
        st.integers(min_value=1, max_value=3),
    ),
)


def named(text: str) -> list[Pair]:
    return [Pair(*pair.split(">")) for pair in text.split()]


def fits(together: Sequence[Pair], links: Mapping[str, Link], kernel: Mapping[str, str]) -> bool:
    """Whether pairs may be in one round, in the contract's words."""
    ends = [{pair.sender, pair.receiver} for pair in together]
    used = Counter(chain.from_iterable(ends))
    used += Counter(chain.from_iterable({kernel[h] for h in both if h in kernel} for both in ends))
    return max(used.values(), default=1) == 1 and all(
        sum(len(both & {*link.hosts}) == 1 < len(both) for both in ends) <= link.capacity
        for link in links.values()
    )


@given(pairs=pairs_of_hosts, links=links_of_hosts, kernel=kernels_of_hosts)
def test_rounds_hold_each_pair_once_where_there_is_room_first(
    pairs: list[Pair], links: dict[str, Link], kernel: dict[str, str]
) -> None:
    found = rounds(pairs, links, kernel)
    assert sorted(chain.from_iterable(found), key=pairs.index) == pairs
    for number, together in enumerate(found):
        assert together
        assert list(together) == sorted(together, key=pairs.index), "in the order of the campaign"
        assert fits(together, links, kernel)
        for pair in together:
            before = pairs[: pairs.index(pair)]
            for earlier in found[:number]:
                assert not fits([*(p for p in earlier if p in before), pair], links, kernel)


def test_all_pairs_of_many_hosts_are_in_at_most_twice_the_least_number_of_rounds() -> None:
    pairs = [Pair(*each) for each in permutations([f"h{n}" for n in range(60)], 2)]
    assert 2 * 59 <= len(rounds(pairs)) < 2 * 2 * 59


def test_overlap_chooses_the_rounds() -> None:
    pairs, kernel = named("a>b c>d"), dict.fromkeys("abcd", "one")
    together, apart = (tuple(pairs),), ((pairs[0],), (pairs[1],))
    assert rounds_of("none", pairs, {}, {}) == apart
    assert rounds_of("round", pairs, {}, {}) == together
    assert rounds_of("round", pairs, {}, kernel) == apart
    assert rounds_of("kernel", pairs, {}, kernel) == together
    assert rounds_of("kernel", pairs, {"up": Link(("a", "c"))}, kernel) == apart
