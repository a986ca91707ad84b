"""Hosts of a fleet: the outlying ones are named, and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from netbench.fleet.causes import BY_BOTH, BY_FACTS, BY_OTHERS, HOST, PAIR
from netbench.fleet.differing_facts import known_facts, odd_facts
from netbench.fleet.fit import LINK, RECEIVER, SENDER, Observed, fit, observed
from netbench.fleet.host_effects import Fleet, fleets_of
from netbench.read.load import load
from netbench.read.readbacks import Readback
from tests.support.fleets import MadeFleet, bisection, every, names, ring
from tools.bench.fleet import holds, shares

ON = "on: tx-tcp-segmentation rx-gro; off: rx-lro"
OFF = "on: rx-gro; off: rx-lro tx-tcp-segmentation"
APART, NOISE = 0.01, 0.02


def drawn(
    pairs: Sequence[str],
    runs: int,
    rng: np.random.Generator,
    sends: Mapping[str, float] | None = None,
    receives: Mapping[str, float] | None = None,
) -> Observed:
    """Pairs whose senders, receivers and ways lie APART, with noisy runs."""
    hosts = tuple(sorted({host for pair in pairs for host in pair.split(">")}))
    ends = np.array([[hosts.index(host) for host in pair.split(">")] for pair in pairs])
    effects = rng.normal(0, APART, (2, len(hosts)))
    for row, shifts in enumerate((sends or {}, receives or {})):
        for host, shift in shifts.items():
            effects[row, hosts.index(host)] = shift
    truth = effects[0, ends[:, 0]] + effects[1, ends[:, 1]] + rng.normal(0, APART, len(pairs))
    mean = truth + rng.normal(0, NOISE / np.sqrt(runs), len(pairs))
    n = np.full(len(pairs), runs)
    error = np.full(len(pairs), NOISE / np.sqrt(runs) if runs > 1 else np.nan)
    return Observed(hosts, tuple(pairs), ends[:, 0], ends[:, 1], mean, n, error)


def found(o: Observed, better: int = 1) -> set[tuple[str, str]]:
    """What is outlying, by kind and name."""
    return {(s.kind, s.name) for s in fit(o, better).outlying}


@pytest.mark.parametrize(("what", "share"), shares(2000).items())
def test_a_good_host_is_seldom_outlying_whatever_the_tail_and_a_slow_one_nearly_always(
    what: str, share: float
) -> None:
    assert holds(what, share, slack=0.015), share


def fleet_of(made: MadeFleet, folder: Path) -> Fleet:
    """The one analysis of a made-up result."""
    (fleet,) = fleets_of(load(made.write(folder)), "throughput")
    return fleet


@pytest.mark.parametrize("seed", range(4))
def test_a_capped_host_and_one_without_tso_are_named_in_a_ring_and_no_other(
    tmp_path: Path, seed: int
) -> None:
    hosts = names(40)
    capped, software = hosts[7 + seed], hosts[25 - seed]
    facts = {host: {"features": ON, "speed": "25000"} for host in hosts}
    facts[software]["features"], facts[capped]["speed"] = OFF, "10000"
    sends, receives = {capped: -0.9, software: -0.4}, {capped: -0.85}
    made = MadeFleet(pairs=ring(hosts), seed=seed, facts=facts, sends=sends, receives=receives)
    causes = fleet_of(made, tmp_path).causes
    assert {cause.name: (cause.kind, cause.how) for cause in causes} == {
        capped: (HOST, (BY_BOTH, BY_BOTH)),
        software: (HOST, (BY_FACTS,)),
    }
    odd = {cause.name: cause.facts[cause.name] for cause in causes}
    assert [each.fact for each in odd[capped]] == ["speed"]
    assert [each.words for each in odd[software]] == [
        "its fact `features` differs (tx-tcp-segmentation off)"
    ]


def test_senders_and_receivers_are_told_apart_where_they_have_partners() -> None:
    rng = np.random.default_rng(3)
    o = drawn(bisection(names(40), 16), 1, rng, {"n007": -0.2}, {"n030": -0.2})
    assert found(o) == {(SENDER, "n007"), (RECEIVER, "n030")}
    o.mean[:] *= -1  # as of a metric of which less is better
    assert found(o, better=-1) == {(SENDER, "n007"), (RECEIVER, "n030")}
    assert found(o) == set()


def test_an_interval_holds_the_effect_of_a_host() -> None:
    rng = np.random.default_rng(5)
    pairs, held = bisection(names(30), 12), 0
    for _ in range(20):
        shifts = fit(drawn(pairs, 2, rng, {"n007": -0.2})).shifts
        (one,) = [s for s in shifts if (s.kind, s.name) == (SENDER, "n007")]
        held += one.low < np.exp(-0.2) < one.high
    assert held >= 16  # of intervals of 95%


SLOW = dict.fromkeys(names(12), -0.3)


@pytest.mark.parametrize(
    ("pairs", "runs", "sends", "odd"),
    [
        pytest.param(every(names(60))[::7], 2, SLOW, None, id="many do not hide each other"),
        pytest.param(bisection(names(40), 10), 1, {}, 17, id="one odd run makes no slow host"),
        pytest.param(ring(names(10)), 1, {}, None, id="a ring of one run each names none"),
    ],
)
def test_as_many_are_outlying_as_are_slow(
    pairs: list[str], runs: int, sends: dict[str, float], odd: int | None
) -> None:
    o = drawn(pairs, runs, np.random.default_rng(9), sends)
    if odd is not None:
        o.mean[odd] -= 0.6
    assert found(o) == {(SENDER, name) for name in sends}


HUB, *OTHERS = names(20)


@pytest.mark.parametrize(
    ("made", "kind", "name", "how", "candidates"),
    [
        pytest.param(
            MadeFleet(pairs=every(names(10)), runs=3, moves={"n003>n004": -0.4}),
            *(PAIR, "n003>n004", (), ()),
            id="neither host is slow elsewhere",
        ),
        pytest.param(
            MadeFleet(pairs=[f"{HUB}>{host}" for host in OTHERS], receives={"n005": -0.5}),
            *(HOST, "n005", (BY_OTHERS,), ()),
            id="of a hub and its partner, the partner",
        ),
        pytest.param(
            MadeFleet(pairs=ring(names(30)), sends={"n005": -0.5}),
            *(PAIR, "n005>n006", (), ("n005", "n006")),
            id="in a ring without odd facts both ends are open",
        ),
    ],
)
def test_what_is_slow_is_named(
    tmp_path: Path, made: MadeFleet, kind: str, name: str, how: tuple[str], candidates: tuple[str]
) -> None:
    (cause,) = fleet_of(made, tmp_path).causes
    assert (cause.kind, cause.name, cause.candidates) == (kind, name, candidates)
    assert not how or cause.how == how


def test_a_link_is_named_and_not_the_hosts_behind_it(tmp_path: Path) -> None:
    hosts = names(24)
    behind, pairs = hosts[:6], bisection(hosts, 12)
    crossing = {p: -0.3 for p in pairs if sum(host in behind for host in p.split(">")) == 1}
    made = MadeFleet(
        pairs=pairs, runs=3, moves=crossing, links={"uplink": behind}, groups={"rack": behind}
    )
    fleet = fleet_of(made, tmp_path / "result")
    assert fleet.causes == ()
    link, *groups = fleet.fit.shared
    assert (link.kind, link.name, link.worse) == (LINK, "uplink", True)
    assert link.low < np.exp(-0.3) < link.high
    assert len(groups) == 2
    for group in groups:  # what is said of the link is not said of the hosts behind it
        assert group.low < 1 < group.high


def test_pairs_without_a_value_are_told_with_their_reason(tmp_path: Path) -> None:
    pairs = ring(names(12))
    fleet = fleet_of(MadeFleet(pairs=pairs, lost=pairs[3:4]), tmp_path / "result")
    assert fleet.unmeasured == {pairs[3]: "failed: connection refused"}


def test_a_pair_that_has_few_runs_is_held_against_the_blocks_that_it_was_in() -> None:
    pairs = ring(names(40))
    of_pair = {pair: range(4 if i % 3 else 12) for i, pair in enumerate(pairs)}
    rows = [(pair, b, np.exp(0.02 * b)) for pair, blocks in of_pair.items() for b in blocks]
    o = observed(pd.DataFrame(rows, columns=["pair", "block", "x"]), "x", pairs)
    assert o is not None
    assert np.ptp(o.mean) < 1e-4


def test_what_the_pairs_of_a_round_share_within_a_block_is_no_noise_of_a_pair() -> None:
    pairs, rng = ring(names(40)), np.random.default_rng(6)
    shared = rng.normal(0, 0.1, (5, 2))  # by block and round
    rows = [
        (pair, block, i % 2, np.exp(shared[block, i % 2] + rng.normal(0, 0.001)))
        for i, pair in enumerate(pairs)
        for block in range(5)
    ]
    o = observed(pd.DataFrame(rows, columns=["pair", "block", "round", "x"]), "x", pairs)
    assert o is not None
    assert (o.error * np.sqrt(o.n)).max() < 0.003
    runs = pd.DataFrame(
        [*rows, ("n001>n002", 0, pd.NA, 1.0)], columns=["pair", "block", "round", "x"]
    )
    assert observed(runs, "x", pairs) is not None  # a record need not name its round


def test_pairs_of_a_star_are_held_against_those_of_their_direction() -> None:
    pairs = [pair for host in OTHERS for pair in (f"{host}>{HUB}", f"{HUB}>{host}")]
    slow = dict.fromkeys(OTHERS[:5], -0.3)  # more of them than may be outlying
    o = drawn(pairs, 9, np.random.default_rng(7), slow, {HUB: 0.4})
    shifts = {s.name: s.ratio for s in fit(o).shifts if s.kind == PAIR}
    for host in OTHERS:
        assert shifts[f"{host}>{HUB}"] == pytest.approx(np.exp(slow.get(host, 0)), abs=0.06)
        assert shifts[f"{HUB}>{host}"] == pytest.approx(1, abs=0.06)


def test_groups_are_held_against_the_rest(tmp_path: Path) -> None:
    hosts = names(30)
    slower = dict.fromkeys(hosts[:15], -0.1) | {"n003": -1.6}  # that one is said of the host
    made = MadeFleet(
        pairs=bisection(hosts, 10), runs=2, sends=slower, groups={"old": hosts[:15], "all": hosts}
    )
    groups = fleet_of(made, tmp_path / "result").fit.shared
    assert {(g.name, g.kind) for g in groups} == {("old", SENDER), ("old", RECEIVER)}
    (sends,) = [g for g in groups if g.kind == SENDER]
    assert sends.low < np.exp(-0.1) < sends.high < 1


def test_a_noisy_pair_answers_for_its_own_noise() -> None:
    o = drawn(ring(names(30)), 5, np.random.default_rng(2))
    o.mean[4] -= 0.5
    assert found(o) == {(PAIR, o.pairs[4])}
    o.error[4] = 0.3
    assert found(o) == set()


def test_cells_that_are_looked_at_together_raise_what_is_outlying() -> None:
    o = drawn(ring(names(30)), 5, np.random.default_rng(3))
    one, many = (fit(o, cells=cells).limits[PAIR] for cells in (1, 8))
    assert np.log(many) == pytest.approx(2 * np.log(one))


def test_a_buffer_that_the_kernel_sizes_is_no_fact_of_a_host_and_one_asked_for_is(
    tmp_path: Path,
) -> None:
    result = load(MadeFleet(pairs=ring(names(12))).write(tmp_path))

    def odd(asked: str) -> set[str]:
        read = [
            Readback("all", pair, "sender", "send_buffer", asked, "9" if at == 3 else "8", 5)
            for at, pair in enumerate(result.plan.pairs)
        ]
        known = known_facts(replace(result, readbacks=read), names(12), "all")
        return {each.fact for facts in odd_facts(known).values() for each in facts}

    assert odd("") == set()
    assert odd("4") == {"send_buffer (read back)"}
