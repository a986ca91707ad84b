"""Published figures: each is in the lines that are quoted, a result finds its own and no others, and
ratios are those that the authors tell.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from netbench import campaign
from netbench.analysis.load import load
from netbench.analysis.published import FOLDER, Message, beside, messages, pairs, ratio_of
from netbench.analysis.result import Result
from tests.support.paths import ROOT
from tests.support.synthetic import Synth

NAMES = ("loopback", "sosend", "splice", "zerocopy")
FILE = "{file: /var/tmp/splice.in}"
SOSEND = {"socket_buffer": ("32K", "64K", "128K"), "tso": ("on", "off")}
LOOPBACK = {"send": ("sendfile", "readwrite"), "pin": ("none", "apart", "same")}


def result(folder: Path, factors: dict[str, tuple[str, ...]], **fields: object) -> Result:
    return load(Synth(factors, runs=4, pairs=("snd>rcv",), **fields).write(folder / "r"))  # type: ignore[arg-type]


def every() -> list[tuple[str, Message]]:
    return [(name, message) for name in NAMES for message in messages(name)]


def test_there_is_a_file_for_each_of_the_four() -> None:
    assert sorted(file.stem for file in FOLDER.glob("*.yaml")) == list(NAMES)
    assert messages("peers") == messages("../loopback") == []


@pytest.mark.parametrize(("name", "message"), every())
def test_each_figure_is_in_the_lines_that_are_quoted(name: str, message: Message) -> None:
    for row in message.rows:
        words = re.findall(r"\d[\d.]*(?:-\d+)?", " ".join(row.lines))
        for metric, value in row.values.items():
            assert value.split()[0].rstrip(".") in [word.rstrip(".") for word in words], (
                metric,
                row,
            )
        assert row.values
        assert row.of in message.variants
        assert (row.at is None) == bool(row.about)


@pytest.mark.parametrize(("name", "message"), every())
def test_no_condition_is_there_twice(name: str, message: Message) -> None:
    places = [(row.of, str(row.at), row.about) for row in message.rows]
    assert len(places) == len(set(places))


@pytest.mark.parametrize(("name", "message"), every())
def test_its_levels_are_those_of_the_shipped_campaign(name: str, message: Message) -> None:
    """Each row with levels is a cell that the campaign runs: no key is left unmatched."""
    planned = campaign.load(ROOT / "campaigns" / f"{name}.yaml")
    cells = [cell.factors for cell in planned.cells]
    for row in message.rows:
        if row.at is not None:
            found = [
                cell
                for cell in cells
                if all(
                    cell[key] == level or (level == "file" and cell[key].startswith("{file:"))
                    for key, level in row.at.items()
                )
            ]
            assert len(found) == 1, row


def test_ratios_are_those_that_the_authors_tell() -> None:
    """2.4.1-zc: three times as fast; 66% less CPU (2.9 times) with the new sosend; 40% cheaper."""
    (first, *_) = messages("loopback")
    at = {(row.of, str(row.at)): row.values["throughput"] for row in first.rows if row.at}
    zc = [at["2.4.1-zc", str({"send": s, "pin": "none"})] for s in ("sendfile", "readwrite")]
    assert int(zc[0]) / int(zc[1]) == pytest.approx(3.01, abs=0.01)
    (sosend,) = messages("sosend")
    cpu = {(r.of, str(r.at)): float(r.values["sender_cpu.rusage"]) for r in sosend.rows}
    less = [
        1
        - cpu["new", str({"socket_buffer": size, "tso": "off"})]
        / cpu["old", str({"socket_buffer": size, "tso": "off"})]
        for size in ("64K", "128K")
    ]
    assert less == pytest.approx([0.66, 0.69], abs=0.01)
    january, _ = messages("zerocopy")
    sendfile = {
        r.of: float(r.values["sender_cpu"])
        for r in january.rows
        if "sendfile()" in r.lines[0] and "disabled" not in r.lines[0]
    }
    assert 1 - sendfile["zerocopy"] / sendfile["vanilla"] == pytest.approx(0.4, abs=0.02)


def test_cells_are_found_by_their_levels(tmp_path: Path) -> None:
    (message,) = messages("sosend")
    found = beside(message, result(tmp_path, SOSEND))
    assert len(found) == 6
    first = next(each for each in found if each.levels == {"socket_buffer": "32K", "tso": "off"})
    assert first.values["old", "throughput"] == "921.28"
    assert first.values["new", "sender_cpu.rusage"] == "7.8"
    changes = [
        (one.levels["socket_buffer"], ratio_of(one, base, "old", "sender_cpu"))
        for one, base in pairs(message.ratios[0], found)
    ]
    assert changes[0] == ("32K", pytest.approx(24.29 / 28.42))
    assert len(changes) == 3


def test_a_variant_that_was_swept_is_a_cell(tmp_path: Path) -> None:
    (message,) = messages("sosend")
    swept = SOSEND | {"kernel": ("old", "new")}
    found = beside(message, result(tmp_path, swept, boots=2))
    assert len(found) == 12
    assert {variant for each in found for variant, _ in each.values} == {"2006"}
    (one, base) = next(pairs(message.ratios[1], found))
    assert (one.levels["kernel"], base.levels["kernel"]) == ("new", "old")
    assert ratio_of(one, base, "2006", "throughput") is not None


def test_what_has_no_counterpart_is_left_out(tmp_path: Path) -> None:
    (message,) = messages("sosend")
    other = {"socket_buffer": ("1M", "64K"), "tso": ("on", "off")}
    assert len(beside(message, result(tmp_path / "a", other))) == 2
    assert (
        beside(message, result(tmp_path / "b", SOSEND | {"kernel": ("6.1", "6.12")}, boots=2)) == []
    )
    assert beside(message, result(tmp_path / "c", SOSEND | {"streams": ("1", "4")})) == []
    (loopback, _) = messages("loopback")
    assert beside(loopback, result(tmp_path / "d", {"send": ("sendfile", "readwrite")})) == []


def test_what_was_not_swept_must_be_written(tmp_path: Path) -> None:
    (loopback, _) = messages("loopback")
    folder = Synth({"send": LOOPBACK["send"]}, runs=4).write(tmp_path / "r")
    with (folder / "campaign.yaml").open("a") as file:
        file.write("transfer: {pin: same}\n")
    found = beside(loopback, load(folder))
    assert [each.values["2.4.1", "throughput"] for each in found] == ["56000", "57000"]


def test_a_file_is_a_file_wherever_it_lies(tmp_path: Path) -> None:
    (message,) = messages("splice")
    factors = {
        "send": ("readwrite", "splice"),
        "receive": ("read",),
        "source": ("zero", FILE.replace("/var/tmp", "/dev/shm")),
        "sink": ("discard",),
        "tool": ("none",),
    }
    found = beside(message, result(tmp_path, factors))
    assert [each.values["2006", "throughput"] for each in found] == ["6.86", "3.77", "6.83"]
