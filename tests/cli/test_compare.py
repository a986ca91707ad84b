"""The verb `compare`: sentences, tables, gates and exit codes, for users and programs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from netbench.report.label import LABEL
from tests.support.local import Command
from tests.support.paths import sample
from tests.support.synthetic import Synth, failed

KERNELS = {"kernel": ("6.1", "6.12"), "send": ("readwrite", "sendfile")}
TWO = ("snd>rcv",)
ONE_EACH = "one campaign each cannot tell a change from what two campaigns differ by"


def newer(factors: dict[str, str]) -> tuple[float, float, float]:
    """6.12 moves 7.1% more at the same cost."""
    rate = 33.0 if factors["send"] == "sendfile" else 18.0
    return rate * (1.071 if factors.get("kernel") == "6.12" else 1), 0.5, 0.6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("results")
    Synth(KERNELS, runs=12, boots=4, between=0.004, spread=0.004, pairs=TWO, truth=newer).write(
        made / "boots"
    )  # type: ignore[arg-type]
    Synth(KERNELS, runs=8, pairs=TWO, compare={"factor": "kernel", "baseline": "6.12"}).write(
        made / "once"
    )
    sends = {"send": KERNELS["send"]}
    Synth(sends, runs=10, spread=0.004, pairs=TWO).write(made / "a")
    tcg = {"snd": {"emulated": "QEMU TCG", "kernel": "6.19.0"}}
    Synth(sends, runs=10, spread=0.004, seed=3, pairs=TWO, facts=tcg).write(made / "b")
    for n in range(5):
        Synth(sends, runs=10, spread=0.004, seed=40 + n, pairs=TWO).write(made / "earlier" / str(n))
    Synth({"tso": ("on", "off")}, runs=3, pairs=("x>y", "y>x")).write(made / "other")
    return made


def words(text: str) -> str:
    return " ".join(text.split())


def test_kernels_are_compared_in_words(netbench: Command, folder: Path) -> None:
    done = netbench("compare", folder / "boots", "--factor", "kernel", "--margin", "1%")
    assert (done.returncode, done.stderr) == (0, "")
    said = words(done.stdout)
    more = r"kernel=6\.12 moves [67]\.\d% more than kernel=6\.1, 95% interval"
    assert re.search(rf"send=sendfile: {more} [5-7]\.\d to [7-8]\.\d% \(better\)", said)
    assert "paired by boot, corrected for 2 comparisons (Holm)" in said
    assert "margin 1%" in said
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []


def test_json_has_the_same_content_as_text(netbench: Command, folder: Path) -> None:
    asked = ("--factor", "kernel", "--baseline", "6.12", "--metric", "throughput", "--json")
    found = json.loads(netbench("compare", folder / "boots", *asked).stdout)
    assert [
        (c["level"], c["context"], c["unit"], c["n"], c["verdict"]) for c in found["comparisons"]
    ] == [("6.1", {"send": send}, "boot", 4, "worse") for send in KERNELS["send"]]
    for c in found["comparisons"]:
        assert c["low"] <= 1 / 1.071 <= c["high"]
        assert c["sentence"].startswith("kernel=6.1 moves ")
    assert (found["label"], found["fell"], found["gates"]) == ("", False, [])


def test_the_campaigns_comparison_is_the_default_and_any_swept_factor_may_be(
    netbench: Command, folder: Path
) -> None:
    assert "kernel compared with 6.12" in netbench("compare", folder / "once").stdout
    done = netbench("compare", folder / "once", "--factor", "send", "--metric", "throughput")
    assert "kernel=6.12: send=sendfile moves 8" in words(done.stdout)
    assert "paired by block" in words(done.stdout)


@pytest.mark.parametrize(
    ("gate", "code", "said"),
    [
        ("throughput<-2%", 0, "passed in 2 of 2."),
        ("throughput>2%", 1, "FELL in 2 of 2: kernel=6.12 send=readwrite: 6.5% more, 95% interval"),
        ("retransmits>5%", 0, "cannot be judged: kernel=6.12 send=readwrite: a run measured 0"),
        ("retransmits<-5%", 2, "cannot be judged: kernel=6.12 send=readwrite: a run measured 0"),
    ],
)
def test_a_gate_decides_the_exit_code(
    netbench: Command, folder: Path, gate: str, code: int, said: str
) -> None:
    done = netbench("compare", folder / "boots", "--factor", "kernel", "--fail-if", gate)
    assert done.returncode == code
    assert f"{gate}: {said}" in words(done.stdout)


def test_a_gate_on_a_level_that_failed_cannot_be_judged(netbench: Command, tmp_path: Path) -> None:
    path = Synth(
        KERNELS | {"send": ("readwrite", "splice", "sendfile")},
        edit=lambda r: failed(r, "failed", "reset") if "send=sendfile" in r["cell"] else r,
    ).write(tmp_path / "r")
    done = netbench("compare", path, "--factor", "send", "--fail-if", "throughput<-2%")
    assert done.returncode == 2
    assert "no run of send=sendfile has a value here; " in done.stderr


@pytest.mark.parametrize(
    ("each", "code", "said"),
    [(1, 0, "passed in 1 of 1; no value in 1 more."), (3, 2, "judged: nothing was compared.")],
)
def test_contexts_of_which_a_gate_says_nothing_are_told(
    netbench: Command, tmp_path: Path, each: int, code: int, said: str
) -> None:
    class Some(Synth):
        def cells(self) -> list[dict[str, Any]]:
            return super().cells()[::each]

    def without(record: dict[str, Any]) -> dict[str, Any]:
        record["sender"].pop("procstat" if "pin=apart" in record["cell"] else "", None)
        return record

    path = Some(edit=without).write(tmp_path / "r")
    done = netbench("compare", path, "--factor", "send", "--fail-if", "softirq_time>900%")
    assert (done.returncode, said in words(done.stdout)) == (code, True), done.stdout
    assert ("cannot judge softirq_time" in done.stderr) == bool(code)


def test_a_gate_on_a_level_that_moved_nothing_cannot_be_judged(
    netbench: Command, tmp_path: Path
) -> None:
    """In one result, or in two with earlier ones."""
    path = Synth(truth=lambda of: (9.0 * (of["send"] == "readwrite"), 0.5, 0.5)).write(tmp_path)
    like = [Synth(seed=n, truth=lambda of: (9.0, 0.5, 0.5)) for n in range(4)]
    a, *_ = [each.write(tmp_path / "h" / str(each.seed)) for each in like]
    for words in ([path, "--factor", "send"], [a, path, "--history", a.parent]):
        done = netbench("compare", *words, "--fail-if", "throughput<-2%")
        assert (done.returncode, "a run measured 0" in done.stderr) == (2, True), done.stderr


def test_two_results_as_text_and_as_json(netbench: Command, folder: Path) -> None:
    done = netbench("compare", folder / "a", folder / "b", "--force", "--fail-if", "throughput<-2%")
    assert done.returncode == 0
    said = words(done.stdout)
    for part in (
        f"no verdict: {ONE_EACH}.",
        "The two ran at different times, so nothing is paired",
        "of independent runs (Welch)",
        "kernel snd 6.18.1 in A; 6.19.0 in B",
        "throughput<-2%: passed in 2 of 2.",
    ):
        assert part in said
    a, b = folder / "a", folder / "b"
    *_, history, _, ab = done.stdout.splitlines()
    assert history == f"  python -m netbench compare {a} {b} --history {folder}"
    assert ab == f"  python -m netbench ab {a}/campaign.yaml --change CMD"
    assert done.stdout.count(LABEL) >= 4  # of the tables; one of the two was emulated
    long = [line for line in done.stdout.splitlines() if len(line) > 80]
    assert all(str(folder) in line for line in long)
    two = ("compare", folder / "a", folder / "b", "--metric", "throughput", "--json")
    found = json.loads(netbench(*two).stdout)
    assert (found["paired"], LABEL in found["label"]) == (False, True)
    assert found["results"] == {"A": str(folder / "a"), "B": str(folder / "b")}
    assert {(c["unit"], c["n"], c["against"]) for c in found["comparisons"]} == {("run", 10, 10)}
    assert {"where": "snd", "what": "kernel", "a": "6.18.1", "b": "6.19.0"} in found["differences"]


def test_a_gate_on_two_results_wants_earlier_ones(netbench: Command, folder: Path) -> None:
    two = ["compare", folder / "a", folder / "b", "--metric", "throughput", "--json"]
    two += ["--fail-if", "throughput>-90%"]
    done = netbench(*two)
    refused = json.loads(done.stdout)
    assert done.returncode == 2
    assert f"cannot judge throughput>-90%: {ONE_EACH}" in done.stderr
    assert f"`compare A B --history {folder}`; --force judges" in done.stderr
    assert refused["refusal"] in done.stderr
    assert [c["unsettled"] for c in refused["comparisons"]] == [ONE_EACH] * 2
    forced = netbench(*two, "--force")
    assert (forced.returncode, json.loads(forced.stdout)["fell"]) == (1, True)
    none = netbench(*two, "--history", folder / "a")
    assert (none.returncode, "has 0 other results of synthetic" in none.stderr) == (2, True)
    done = netbench(*two, "--history", folder / "earlier")
    found = json.loads(done.stdout)
    assert (done.returncode, found["refusal"], len(found["history"]["results"])) == (1, "", 5)
    assert [c["earlier"] for c in found["comparisons"]] == [5, 5]


def test_campaigns_that_measured_different_things_are_refused_with_what_differs(
    netbench: Command,
) -> None:
    two = [sample("zerocopy"), sample("sosend")]
    done = netbench("compare", *two)
    assert (done.returncode, done.stdout) == (2, "")
    assert "zerocopy (A) and sosend (B) measured different things (transfer.rec" in done.stderr
    assert "transfer.rate 500Mb/s and 940Mb/s; " in done.stderr
    assert "measured different" not in netbench("compare", *two, "--force").stderr


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("boots", "its campaign has no `compare:`; name a factor with --factor (kernel, send)"),
        ("boots --factor tso", "no factor 'tso'; there are kernel, send"),
        ("boots --factor kernel --baseline 5.4", "no level '5.4'; its levels: 6.1, 6.12"),
        ("boots --factor kernel --metric throughput.soak", "did you mean throughput?"),
        (
            "boots --factor kernel --fail-if throughput<=2",
            "is not a gate; write METRIC, < or >, and a change",
        ),
        ("a other", "have no cell in common: only in A: the pairs snd>rcv"),
        ("a b --factor send", "--factor and --baseline compare levels within one result"),
        ("a b/../a", "is named twice"),
        ("once --history a", "--history and --force are of two results"),
        ("a b earlier/0 earlier/1", "name one result, or two"),
    ],
)
def test_a_wrong_request_prints_only_an_error(
    netbench: Command, folder: Path, wrong: str, said: str
) -> None:
    words = [folder / word if (folder / word).exists() else word for word in wrong.split()]
    done = netbench("compare", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
