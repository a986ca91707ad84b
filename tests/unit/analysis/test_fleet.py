"""Hosts of a fleet: the outlying ones are named, and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import bdtrc, stdtrit

from netbench.analysis.fleet import Fleet, fleets_of
from netbench.analysis.fleet_causes import BY_BOTH, BY_FACTS, BY_OTHERS, HOST, PAIR
from netbench.analysis.fleet_facts import known_facts, odd_facts
from netbench.analysis.fleet_groups import group_shifts
from netbench.analysis.fleet_model import Observed, robust_spread, variances
from netbench.analysis.fleet_outliers import RECEIVER, SENDER, Analysis, analysed
from netbench.analysis.fleet_runs import moderated, observed
from netbench.analysis.load import load
from netbench.analysis.readbacks import Readback
from netbench.model import Repeat
from tests.support.fleets import MadeFleet, bisection, every, names, ring

REPEAT = Repeat(min=5, max=5)
ON = "on: tx-tcp-segmentation rx-gro; off: rx-lro"
OFF = "on: rx-gro; off: rx-lro tx-tcp-segmentation"
APART, NOISE = 0.01, 0.02


def drawn(
    pairs: Sequence[str],
    runs: int,
    rng: np.random.Generator,
    sends: Mapping[str, float] | None = None,
    receives: Mapping[str, float] | None = None,
    apart: float = APART,
    noise: float = NOISE,
) -> Observed:
    """Pairs whose senders, receivers and ways lie `apart`, with noisy runs."""
    hosts = tuple(sorted({host for pair in pairs for host in pair.split(">")}))
    ends = np.array([[hosts.index(host) for host in pair.split(">")] for pair in pairs])
    effects = rng.normal(0, apart, (2, len(hosts)))
    for row, shifts in enumerate((sends or {}, receives or {})):
        for host, shift in shifts.items():
            effects[row, hosts.index(host)] = shift
    truth = effects[0, ends[:, 0]] + effects[1, ends[:, 1]] + rng.normal(0, apart, len(pairs))
    values = truth[:, None] + rng.normal(0, noise, (len(pairs), runs))
    mean = values.mean(axis=1)
    squares = ((values - mean[:, None]) ** 2).sum(axis=1)
    n = np.full(len(pairs), runs)
    variance, freedom = moderated(squares, n - 1)
    return Observed(hosts, tuple(pairs), ends[:, 0], ends[:, 1], mean, n, variance / n, freedom)


def found(o: Observed) -> set[tuple[str, str]]:
    """What is outlying, by kind and name."""
    return {(s.kind, s.name) for s in analysed(o, {}, REPEAT).shifts if s.outlying}


def fleet_of(made: MadeFleet, folder: Path) -> Fleet:
    """The one analysis of a made-up result."""
    (fleet,) = fleets_of(load(made.write(folder)), "throughput")
    return fleet


def faulty_ring(seed: int, folder: Path) -> tuple[Fleet, str, str]:
    """A ring with a host whose link is capped and one without TSO."""
    hosts = names(40)
    capped, software = hosts[7 + seed], hosts[25 - seed]
    facts = {
        host: {
            "features": OFF if host == software else ON,
            "speed": "10000" if host == capped else "25000",
        }
        for host in hosts
    }
    made = MadeFleet(
        pairs=ring(hosts),
        seed=seed,
        facts=facts,
        sends={capped: -0.9, software: -0.4},
        receives={capped: -0.85},
    )
    return fleet_of(made, folder), capped, software


def test_a_capped_host_and_one_without_tso_are_named_in_a_ring_and_seldom_another(
    tmp_path: Path,
) -> None:
    seeds, wrong = 6, 0
    for seed in range(seeds):
        fleet, capped, software = faulty_ring(seed, tmp_path / str(seed))
        by_name = {cause.name: cause for cause in fleet.causes}
        wrong += len(by_name) > 2
        assert {by_name[capped].kind, by_name[software].kind} == {HOST}
        assert by_name[capped].how == (BY_BOTH, BY_BOTH)
        assert by_name[software].how == (BY_FACTS,)
        assert [odd.fact for odd in by_name[capped].facts] == ["speed"]
        assert [odd.words for odd in by_name[software].facts] == [
            "its fact `features` differs (tx-tcp-segmentation off)"
        ]
    assert bdtrc(wrong - 1, seeds, 0.05) > 0.001  # P(as many or more)


def test_quiet_fleets_have_an_outlier_as_seldom_as_the_confidence_says() -> None:
    rng = np.random.default_rng(11)
    fleets = [drawn(ring(names(40)), 5, rng) for _ in range(60)]
    wrong = sum(bool(found(o)) for o in fleets)
    assert bdtrc(wrong - 1, len(fleets), 0.05) > 0.001  # P(as many or more)


def test_senders_and_receivers_are_told_apart_where_they_have_partners() -> None:
    rng = np.random.default_rng(3)
    hosts = names(40)
    o = drawn(bisection(hosts, 10), 1, rng, {"n007": -0.2}, {"n030": -0.2})
    assert found(o) == {(SENDER, "n007"), (RECEIVER, "n030")}


def test_an_interval_holds_the_effect_of_a_host() -> None:
    rng = np.random.default_rng(5)
    pairs, held = bisection(names(30), 12), 0
    for _ in range(20):
        shifts = analysed(drawn(pairs, 2, rng, {"n007": -0.2}), {}, REPEAT).shifts
        (one,) = [s for s in shifts if (s.kind, s.name) == (SENDER, "n007")]
        held += one.low < np.exp(-0.2) < one.high
    assert held >= 18  # of simultaneous intervals of 95%


def test_many_outliers_do_not_hide_each_other() -> None:
    slow = dict.fromkeys(names(12), -0.3)
    o = drawn(every(names(60))[::7], 2, np.random.default_rng(9), slow)
    assert found(o) == {(SENDER, name) for name in slow}


def test_a_host_does_not_hide_behind_the_spread_that_it_makes() -> None:
    hosts = names(10)
    for seed in range(20):  # of which 13 are found where the spread keeps the host in it
        o = drawn(bisection(hosts, 6), 2, np.random.default_rng(seed), {hosts[3]: -0.15})
        assert found(o) == {(SENDER, hosts[3])}


def test_a_pair_is_named_where_neither_host_is_slow_elsewhere(tmp_path: Path) -> None:
    made = MadeFleet(pairs=every(names(10)), runs=3, moves={"n003>n004": -0.4})
    (cause,) = fleet_of(made, tmp_path / "result").causes
    assert (cause.kind, cause.name, cause.candidates) == (PAIR, "n003>n004", ())


def test_of_a_hub_and_its_partner_the_partner_is_named(tmp_path: Path) -> None:
    hub, *others = names(20)
    made = MadeFleet(pairs=[f"{hub}>{host}" for host in others], receives={"n005": -0.5})
    (cause,) = fleet_of(made, tmp_path / "result").causes
    assert (cause.kind, cause.name, cause.how) == (HOST, "n005", (BY_OTHERS,))


def test_a_slow_pair_of_a_ring_without_odd_facts_leaves_both_ends_open(tmp_path: Path) -> None:
    made = MadeFleet(pairs=ring(names(30)), sends={"n005": -0.5})
    (cause,) = fleet_of(made, tmp_path / "result").causes
    assert (cause.kind, cause.name) == (PAIR, "n005>n006")
    assert cause.candidates == ("n005", "n006")


def test_a_link_is_named_and_not_the_hosts_behind_it(tmp_path: Path) -> None:
    hosts = names(24)
    behind = hosts[:6]
    pairs = bisection(hosts, 12)
    crossing = {p: -0.3 for p in pairs if sum(host in behind for host in p.split(">")) == 1}
    made = MadeFleet(
        pairs=pairs, runs=3, moves=crossing, links={"uplink": behind}, groups={"rack": behind}
    )
    fleet = fleet_of(made, tmp_path / "result")
    assert [(cause.kind, cause.name) for cause in fleet.causes] == [("link", "uplink")]
    assert len(fleet.groups) == 2
    for group in fleet.groups:  # what is said of the link is not said of the hosts behind it
        assert group.low < 1 < group.high


def test_one_odd_run_makes_no_slow_host() -> None:
    o = drawn(bisection(names(40), 10), 1, np.random.default_rng(4))
    o.mean[17] -= 0.6
    assert found(o) == set()


def test_pairs_without_a_value_are_told_with_their_reason(tmp_path: Path) -> None:
    pairs = ring(names(12))
    fleet = fleet_of(MadeFleet(pairs=pairs, lost=pairs[3:4]), tmp_path / "result")
    assert [(u.pair, u.why) for u in fleet.unmeasured] == [(pairs[3], "failed: connection refused")]


def test_what_all_pairs_of_a_block_share_is_no_noise_of_a_pair(tmp_path: Path) -> None:
    quiet = fleet_of(MadeFleet(pairs=ring(names(20))), tmp_path / "quiet")
    swinging = MadeFleet(pairs=ring(names(20)))
    edited = swinging.edit

    def edit(record: dict[str, object]) -> dict[str, object] | None:
        moved = edited(record) if edited else record
        assert moved is not None
        for side in ("sender", "receiver"):
            (first,), (last,) = moved[side]["flow"]["bytes"]  # type: ignore[index]
            scale = 1 - 0.5 * (int(moved["block"]) % 2)  # type: ignore[call-overload]
            moved[side]["flow"]["bytes"] = [[first], [first + round((last - first) * scale)]]  # type: ignore[index]
        return moved

    swinging.edit = edit
    swung = fleet_of(swinging, tmp_path / "swinging")
    assert swung.observed.error == pytest.approx(quiet.observed.error, rel=0.5)


def test_a_pair_that_has_few_runs_is_held_against_the_blocks_that_it_was_in() -> None:
    pairs = ring(names(40))
    rows = [
        (pair, block, np.exp(0.02 * block))
        for i, pair in enumerate(pairs)
        for block in range(4 if i % 3 else 12)
    ]
    runs = pd.DataFrame(rows, columns=["pair", "block", "throughput"])
    o = observed(runs, "throughput", pairs)
    assert o is not None
    assert np.ptp(o.mean) < 1e-4


def test_what_the_pairs_of_a_round_share_within_a_block_is_no_noise_of_a_pair() -> None:
    pairs = ring(names(40))
    rng = np.random.default_rng(6)
    shared = rng.normal(0, 0.1, (5, 2))  # by block and round
    rows = [
        (pair, block, i % 2, np.exp(shared[block, i % 2] + rng.normal(0, 0.001)))
        for i, pair in enumerate(pairs)
        for block in range(5)
    ]
    runs = pd.DataFrame(rows, columns=["pair", "block", "round", "throughput"])
    o = observed(runs, "throughput", pairs)
    assert o is not None
    assert np.sqrt(o.error * o.n).max() < 0.003


def test_outliers_of_several_cells_are_corrected_for_all_of_them() -> None:
    o = drawn(ring(names(12)), 5, np.random.default_rng(3))
    (one, *_), (more, *_) = (analysed(o, {}, REPEAT, families).shifts for families in (1, 50))
    assert 1 - more.level == pytest.approx((1 - one.level) / 50)


def test_pairs_of_a_star_are_held_against_those_of_their_direction() -> None:
    hub, *others = names(20)
    pairs = [pair for host in others for pair in (f"{host}>{hub}", f"{hub}>{host}")]
    slow = dict.fromkeys(others[:5], -0.3)  # more of them than are looked for
    o = drawn(pairs, 1, np.random.default_rng(7), slow, {hub: 0.4}, apart=0, noise=0.001)
    shifts = {s.name: s.ratio for s in analysed(o, {}, REPEAT).shifts if s.kind == PAIR}
    for host in others:
        assert shifts[f"{host}>{hub}"] == pytest.approx(np.exp(slow.get(host, 0)), abs=0.01)
        assert shifts[f"{hub}>{host}"] == pytest.approx(1, abs=0.01)


def test_a_host_that_sends_slowly_and_receives_fast_is_not_named_by_both(tmp_path: Path) -> None:
    made = MadeFleet(pairs=ring(names(30)), sends={"n005": -0.5}, receives={"n005": 0.5})
    causes = fleet_of(made, tmp_path / "result").causes
    assert {(cause.kind, cause.name) for cause in causes} == {
        (PAIR, "n005>n006"),
        (PAIR, "n004>n005"),
    }


def test_intervals_of_groups_hold_all_of_them_at_once() -> None:
    o = drawn(bisection(names(20), 8), 2, np.random.default_rng(8))
    analysis = analysed(o, {}, REPEAT)

    def width(*groups: str) -> float:
        members = {group: o.hosts[: len(o.hosts) // 2] for group in groups}
        one = next(group_shifts(o, analysis, members, REPEAT))
        return float(np.log(one.high / one.low))

    one, four = (stdtrit(9, 1 - 0.025 / tests) for tests in (2, 8))  # as senders, as receivers
    assert width("a", "b", "c", "d") / width("a") == pytest.approx(four / one)


def test_groups_are_held_against_the_rest(tmp_path: Path) -> None:
    hosts = names(30)
    slower = dict.fromkeys(hosts[:15], -0.1) | {"n003": -1.6}  # that one is said of the host
    made = MadeFleet(
        pairs=bisection(hosts, 10), runs=2, sends=slower, groups={"old": hosts[:15], "all": hosts}
    )
    groups = fleet_of(made, tmp_path / "result").groups
    assert {(g.group, g.kind) for g in groups} == {("old", SENDER), ("old", RECEIVER)}
    (sends,) = [g for g in groups if g.kind == SENDER]
    assert sends.low < np.exp(-0.1) < sends.high < 1


def test_variances_are_those_of_restricted_maximum_likelihood() -> None:
    o = drawn(every(names(6)), 4, np.random.default_rng(4), apart=0.05, noise=0.08)
    o.error[::3] *= 4  # pairs are not measured equally well
    sides = [np.equal.outer(ends, ends).astype(float) for ends in (o.sender, o.receiver)]

    def likelihood(logs: Sequence[float]) -> float:
        """-2 log of the restricted likelihood, dense (Searle, section 6.6)."""
        variance = sum(np.exp(log) * each for log, each in zip(logs, sides, strict=False))
        inverse = np.linalg.inv(variance + np.diag(np.exp(logs[2]) + o.error))
        weights = inverse.sum(axis=0)
        rest = o.mean - weights @ o.mean / weights.sum()
        whole = np.linalg.slogdet(inverse)[1]
        return float(np.log(weights.sum()) - whole + rest @ inverse @ rest)

    best = minimize(likelihood, np.log([0.05**2] * 3), method="Nelder-Mead").x
    found = variances(o, np.ones(len(o.pairs), bool), robust_spread(o))
    deviations = np.sqrt([found.sender, found.receiver, found.pair])
    assert deviations == pytest.approx(np.exp(best / 2), rel=0.03)


def test_the_variance_of_pairs_has_a_degree_of_freedom_less_for_each_effect_of_a_host() -> None:
    o = drawn(every(names(6)), 4, np.random.default_rng(4), apart=0.01, noise=0.01)
    for effects in (o.sender, o.receiver):
        o.mean[:] += np.random.default_rng(5).normal(0, 0.1, 6)[effects]
    found = variances(o, np.ones(len(o.pairs), bool), robust_spread(o))
    assert found.freedom == pytest.approx(30 - 1 - 5 - 5, rel=0.1)


def test_quiet_fleets_of_few_partners_have_an_outlier_as_seldom_as_the_confidence_says() -> None:
    rng = np.random.default_rng(12)
    pairs = bisection(names(12), 8)
    fleets = [drawn(pairs, 5, rng, noise=0.001) for _ in range(40)]
    wrong = sum(bool(found(o)) for o in fleets)
    assert bdtrc(wrong - 1, len(fleets), 0.05) > 0.001  # P(as many or more)


def test_a_ring_of_one_run_each_names_none() -> None:
    assert found(drawn(ring(names(10)), 1, np.random.default_rng(1))) == set()


def test_a_noisy_pair_answers_for_its_own_noise() -> None:
    rng = np.random.default_rng(2)
    noise = np.where(np.arange(200) < 20, 0.2, 0.01)
    squares = noise**2 * rng.chisquare(4, 200)
    variance, freedom = moderated(squares, np.full(200, 4))
    assert np.median(variance[:20]) > 100 * np.median(variance[20:])
    assert (freedom < 10).all()
    alike, many = moderated(0.01**2 * rng.chisquare(4, 200), np.full(200, 4))
    assert (many > 20).all()
    assert alike == pytest.approx(np.full(200, 0.01**2), rel=0.5)


def test_an_outlier_is_not_drawn_towards_the_others() -> None:
    o = drawn(ring(names(30)), 5, np.random.default_rng(1))
    o.mean[4] -= 0.5
    analysis: Analysis = analysed(replace(o), {}, REPEAT)
    by_name = {s.name: s for s in analysis.shifts if s.kind == PAIR}
    assert np.isnan(by_name[o.pairs[4]].shrunk)
    others = [s for s in by_name.values() if not s.outlying]
    assert all(abs(np.log(s.shrunk)) <= abs(np.log(s.ratio)) for s in others)


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
