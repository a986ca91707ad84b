"""Which factor matters: contrasts against scipy's paired t, complete blocks, what is left out, and
by simulation that nothing is found where nothing is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Container, Mapping
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from netbench.read.effects import Crossing, Effect, Effects, crossing, effects_of
from netbench.read.load import load
from netbench.result.files import PlannedCell
from tests.support.synthetic import Record, Synth, failed

FACTORS = {"send": ("readwrite", "sendfile"), "tso": ("off", "on")}


def truth(factors: Mapping[str, str]) -> tuple[float, float, float]:
    """TSO does +14% to sendfile and +1% to read+write."""
    fast = factors["send"] == "sendfile"
    more = 1.0 if factors["tso"] == "off" else 1.14 if fast else 1.01
    return (30.0 if fast else 18.0) * more, 0.5, 0.6


def made(folder: Path, **fields: object) -> Effects:
    known: dict[str, object] = {"factors": FACTORS, "truth": truth, "pairs": ("snd>rcv",)}
    (found,) = effects_of(load(Synth(**known | fields).write(folder / "r")), "throughput")  # type: ignore[arg-type]
    return found


def named(found: Effects, name: str) -> Effect:
    return next(effect for effect in found.effects if effect.name == name)


def test_contrasts_are_students_of_differences_within_blocks(tmp_path: Path) -> None:
    found = made(tmp_path, spread=0.02)
    table = load(tmp_path / "r").ok.pivot(
        index="block", columns=["send", "tso"], values="throughput"
    )
    write_off, write_on, file_off, file_on = (
        np.log(table[levels].to_numpy()) for levels in itertools.product(*FACTORS.values())
    )
    by_hand = {
        "send": (file_off + file_on) / 2 - (write_off + write_on) / 2,
        "tso": (write_on + file_on) / 2 - (write_off + file_off) / 2,
        "send × tso": (file_on - file_off) - (write_on - write_off),
    }
    assert found.unit == "block"
    for name, values in by_hand.items():
        (c,) = named(found, name).contrasts
        assert math.log(c.ratio) == pytest.approx(values.mean())
        assert c.error >= scipy.stats.sem(values) * (1 - 1e-9)
        t = scipy.stats.t(c.freedom, values.mean(), c.error)
        assert (math.log(c.low), math.log(c.high)) == pytest.approx(t.interval(c.corrected))
        if c.freedom == len(values) - 1:
            assert c.p == pytest.approx(scipy.stats.ttest_1samp(values, 0).pvalue)
    levels = sorted(c.corrected for effect in found.effects for c in effect.contrasts)
    assert levels[-1] == pytest.approx(1 - 0.05 / 3)  # Holm: all three are one family


def test_what_is_true_is_found(tmp_path: Path) -> None:
    found = made(tmp_path, spread=0.01, runs=20)
    (both,) = named(found, "send × tso").contrasts
    assert both.low < 1.14 / 1.01 < both.high
    assert both.ratio == pytest.approx(1.14 / 1.01, rel=0.02)
    means = {levels: each.mean for levels, each in found.means("send", "tso").items()}
    for send, change in (("sendfile", 1.14), ("readwrite", 1.01)):
        assert means[send, "on"] / means[send, "off"] == pytest.approx(change, rel=0.02)
    assert [effect.name for effect in found.main] == ["send", "tso"]
    largest, least, most = named(found, "send").size
    assert 0 < least < largest < most


def test_the_baseline_is_that_of_compare(tmp_path: Path) -> None:
    plain = made(tmp_path / "a")
    turned = made(tmp_path / "b", compare={"factor": "tso", "baseline": "on"})
    (c,), (d,) = named(plain, "tso").contrasts, named(turned, "tso").contrasts
    assert (d.level, d.baseline) == ("off", "on")
    assert d.ratio == pytest.approx(1 / c.ratio)


def test_a_control_is_no_part_of_it(tmp_path: Path) -> None:
    compare = {"factor": "tso", "baseline": "off", "control": True}
    found = made(tmp_path, compare=compare)
    assert set(found.crossed.cells.values()) == {
        f"send={a},tso={b}" for a, b in itertools.product(*FACTORS.values())
    }


def losing(cell: str, blocks: Container[int] = range(99)) -> Callable[[Record], Record]:
    """Runs of a cell fail."""

    def edit(record: Record) -> Record:
        is_lost = record["block"] in blocks and record["cell"] == cell
        return failed(record, "failed", "reset") if is_lost else record

    return edit


def test_incomplete_blocks_are_left_out_and_told(tmp_path: Path) -> None:
    found = made(tmp_path, edit=losing("send=sendfile,tso=on", (2, 5)))
    assert found.n == 8
    assert "2 blocks left out: not every crossed cell ran in them" in found.notes


def test_a_cell_that_failed_takes_its_level_with_it(tmp_path: Path) -> None:
    factors = FACTORS | {"send": ("readwrite", "sendfile", "splice")}
    found = made(tmp_path, factors=factors, edit=losing("send=splice,tso=on"))
    assert found.crossed.levels["send"] == ("readwrite", "sendfile")
    assert any("send=splice,tso=on" in note for note in found.notes)
    assert any(note.endswith("left out: send=splice") for note in found.notes)


def test_kernels_are_paired_by_their_rounds_and_boots_are_the_unit(tmp_path: Path) -> None:
    def slower(f: Mapping[str, str]) -> tuple[float, float, float]:
        fast = 30.0 if f["send"] == "sendfile" else 18.0
        return fast * (0.9 if f["kernel"] == "new" else 1.0), 0.5, 0.6

    factors = {"send": FACTORS["send"], "kernel": ("old", "new")}
    found = made(tmp_path, factors=factors, truth=slower, boots=4, runs=12, between=0.003)
    (c,) = named(found, "kernel").contrasts
    assert (found.unit, found.n, c.n, c.freedom) == ("boot", 4, 4, 3)
    assert c.high < 1
    assert c.ratio == pytest.approx(0.9, rel=0.02)


def test_each_pair_of_hosts_is_told_alone(tmp_path: Path) -> None:
    result = load(Synth(FACTORS, truth=truth, pairs=("a>b", "c>d")).write(tmp_path / "r"))
    found = effects_of(result, "throughput")
    assert [each.pair for each in found] == ["a>b", "c>d"]
    levels = sorted(c.corrected for each in found for e in each.effects for c in e.contrasts)
    assert levels[-1] == pytest.approx(1 - 0.05 / 6)


@pytest.mark.slow
def test_the_null_is_kept(tmp_path: Path) -> None:
    """Of campaigns whose factors do nothing, at most 5% (of 60: 8 at the very most) find one."""
    wrong = 0
    for seed in range(60):
        found = made(tmp_path / str(seed), truth=lambda _: (20.0, 0.5, 0.6), seed=seed, spread=0.02)
        wrong += any(c.low > 1 or c.high < 1 for e in found.effects for c in e.contrasts)
    assert wrong <= 8


def cell(**levels: str) -> PlannedCell:
    return PlannedCell(",".join(f"{k}={v}" for k, v in levels.items()), levels)


def crossed(cells: list[PlannedCell], *swept: str) -> Crossing | None:
    """Of cells that all were measured."""
    return crossing(cells, swept, [each.cell for each in cells])


def test_excluded_cells_cost_the_levels_that_lack_most() -> None:
    """As campaigns/zerocopy.yaml: what is left is send × sg."""
    on_off = ("on", "off")
    cells = [
        cell(send=send, sg=sg, tx_checksum=tx, align="0", preamble="0")
        for send, sg, tx in itertools.product(("sendfile", "readwrite"), on_off, on_off)
        if (sg, tx) != ("on", "off")
    ]
    cells += [
        cell(send="readwrite", sg="on", tx_checksum="on", align="3", preamble="0"),
        cell(send="readwrite", sg="on", tx_checksum="on", align="0", preamble="100"),
    ]
    found = crossed(cells, *cells[0].factors)
    assert found is not None
    assert found.levels == {"send": ("sendfile", "readwrite"), "sg": on_off}
    assert found.where == "tx_checksum=on align=0 preamble=0"
    assert found.notes[0].startswith("4 cells of 8 left out")
    assert "tx_checksum=off; align=3; preamble=100" in found.notes[1]


def test_a_key_that_include_gives_goes_with_its_factor() -> None:
    cells = [
        cell(send=send, pin=pin, chunk={"sendfile": "file", "write": "8K"}[send])
        for send, pin in itertools.product(("sendfile", "write"), ("none", "same"))
    ]
    found = crossed(cells, "send", "pin")
    assert found is not None
    assert found.notes == ("chunk goes with send (`include`): what it does is part of that effect",)


def test_a_diagonal_and_one_factor_have_no_crossing(tmp_path: Path) -> None:
    cells = [cell(a="1", b="1"), cell(a="2", b="2")]
    assert crossed(cells, "a", "b") is None
    result = load(Synth({"send": FACTORS["send"]}).write(tmp_path / "r"))
    assert effects_of(result, "throughput") == []
