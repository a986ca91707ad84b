"""What a campaign can show before it runs: the noncentral t against scipy's and against trials, and
what an earlier result says of a campaign.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import yaml

from netbench import campaign
from netbench.model import Campaign
from netbench.read.load import load
from netbench.read.outlook import Outlook, outlook
from netbench.read.result import Result
from netbench.stats.intervals import sequential_confidence
from netbench.stats.power import smallest_difference, units_needed, upper_deviation
from tests.support.local import call
from tests.support.paths import ROOT, SAMPLE
from tests.support.synthetic import Record, Synth, scaled

PAIR = ("snd>rcv",)
TRIALS = 20_000


def found_share(n: int, confidence: float, difference: float, sd: float) -> float:
    """By scipy's noncentral t."""
    limit = scipy.stats.t.ppf((1 + confidence) / 2, n - 1)
    return float(scipy.stats.nct.sf(limit, n - 1, difference * math.sqrt(n) / sd))


@pytest.mark.parametrize("n", [2, 3, 4, 10, 30, 200])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 1 - 0.05 / 6, 0.999])
def test_the_smallest_difference_is_scipys(n: int, confidence: float) -> None:
    difference = smallest_difference(0.02, n, confidence)
    assert found_share(n, confidence, difference, 0.02) == pytest.approx(0.8, abs=1e-3)


@pytest.mark.parametrize("difference", [0.01, 0.02, 0.05])
def test_the_fewest_runs_are_named(difference: float) -> None:
    n = units_needed(difference, 0.018, 0.99)
    assert n is not None
    assert found_share(n, 0.99, difference, 0.018) >= 0.8 - 1e-6
    assert found_share(n - 1, 0.99, difference, 0.018) < 0.8


def test_what_no_number_of_runs_or_any_shows() -> None:
    assert (units_needed(0.0001, 0.5, 0.95), units_needed(0.01, 0.0, 0.95)) == (None, 2)
    assert math.isnan(smallest_difference(0.01, 1, 0.95))


def test_a_small_pilot_may_have_seen_too_little() -> None:
    values = np.random.default_rng(1).normal(0, 1, (TRIALS, 6)).std(axis=1, ddof=1)
    assert (upper_deviation(1.0, 5) * values >= 1).mean() == pytest.approx(0.8, abs=0.01)


# --- a campaign and an earlier result ---


def asked(**changes: object) -> Campaign:
    """Two levels of `send`, compared; hosts that nothing can reach."""
    tree = {
        "netbench": 1,
        "name": "asked",
        "hosts": {
            "snd": {"ssh": "no.invalid", "address": "192.0.2.1"},
            "rcv": {"ssh": "neither.invalid", "address": "192.0.2.2"},
        },
        "sweep": {"send": ["readwrite", "sendfile"]},
        "compare": {"factor": "send", "baseline": "readwrite"},
        "repeat": {"min": 8, "max": 20},
        "meters": ["rusage", "procstat"],
    }
    given = {key: value for key, value in (tree | changes).items() if value is not None}
    text = yaml.safe_dump(given, sort_keys=False)
    return campaign.parse(text, "asked.yaml")


def pilot(folder: Path, **fields: object) -> Result:
    made = {"factors": {"send": ("readwrite", "sendfile")}, "pairs": PAIR, "runs": 12}
    return load(Synth(**made | fields).write(folder))  # type: ignore[arg-type]


def test_paired_differences_of_the_pilot_are_what_varies(tmp_path: Path) -> None:
    result = pilot(tmp_path / "r")
    (one,) = outlook(asked(), result).metrics
    logs = np.log(result.ok.pivot(index="block", columns="send", values="throughput"))
    sd = float((logs["sendfile"] - logs["readwrite"]).std())
    assert (one.sd, one.freedom, one.paired, one.family) == (pytest.approx(sd), 11, True, 1)
    confidence = sequential_confidence(0.95, 8, 20)
    assert one.confidence == pytest.approx(confidence)
    assert one.of == "send=sendfile against send=readwrite"
    smallest = [smallest_difference(sd, n, confidence, blocks=True) for n in (8, 20)]
    assert {n: math.log1p(d) for n, d in one.smallest.items()} == pytest.approx(
        dict(zip((8, 20), smallest, strict=True))
    )
    assert one.needed[0.01] == units_needed(math.log1p(0.01), sd, confidence, blocks=True)


def test_the_family_is_corrected_and_what_varies_most_counts(tmp_path: Path) -> None:
    def noisy(record: Record) -> Record:
        is_noisy = record["factors"] == {"send": "splice", "pin": "same"}
        return scaled(record, 1 + 0.1 * (record["block"] % 2)) if is_noisy else record

    factors = {"send": ("readwrite", "sendfile", "splice"), "pin": ("same", "apart")}
    result = pilot(tmp_path / "r", factors=factors, edit=noisy)
    swept = {name: list(levels) for name, levels in factors.items()}
    (one,) = outlook(asked(sweep=swept), result).metrics
    assert (one.family, one.of) == (4, "send=splice,pin=same against send=readwrite,pin=same")
    assert one.confidence == pytest.approx(sequential_confidence(1 - 0.05 / 4, 8, 20))


def told(found: Outlook) -> str:
    return "; ".join(found.notes)


def test_what_does_not_match_is_said(tmp_path: Path) -> None:
    result = pilot(tmp_path / "r", factors={"send": ("readwrite",), "tso": ("on", "off")})
    sweep = {"send": ["readwrite", "splice"], "pin": ["same", "apart"]}
    repeat = {"min": 8, "metrics": ["throughput", "system_cpu.soak"]}
    found = outlook(asked(sweep=sweep, repeat=repeat, meters=["rusage", "soak"]), result)
    (one,) = found.metrics
    assert not one.paired  # of two cells like the one that is there
    logs = np.log(result.ok["throughput"]).groupby(result.ok["cell"], observed=True)
    assert one.sd == pytest.approx(math.sqrt(2) * logs.std().max())
    for what in (
        "no cell there has the levels of send=splice,pin=same; send=splice,pin=apart",
        "pin: not swept there",
        "tso: swept there alone",
        "system_cpu.soak was not measured there",
    ):
        assert what in told(found)
    other = pilot(tmp_path / "one", factors={"send": ("write", "zerocopy")})
    assert outlook(asked(), other).metrics == ()


def test_without_compare_each_cell_stands_for_itself(tmp_path: Path) -> None:
    found = outlook(asked(compare=None), pilot(tmp_path / "r", pairs=("x>y",)))
    (one,) = found.metrics
    assert (one.family, one.paired) == (1, False)
    assert "other pairs of hosts there: x>y" in told(found)


def test_boots_are_the_unit_where_hosts_are_booted(tmp_path: Path) -> None:
    factors = {"kernel": ("a", "b"), "send": ("readwrite", "sendfile")}
    wanted = asked(
        kernels={name: {"release": name} for name in factors["kernel"]},
        sweep={name: list(levels) for name, levels in factors.items()},
        compare={"factor": "kernel", "baseline": "a"},
        repeat={"min": 8, "boots": 4},
    )
    fields = {"factors": factors, "runs": 40, "boots": 8, "between": 0.01, "spread": 0.02}
    (one,) = outlook(wanted, pilot(tmp_path / "r", **fields)).metrics
    assert (one.unit, one.family, list(one.smallest)) == ("boot", 2, [4])
    assert 0.005 < one.between < 0.03
    assert 0.02 < one.within < 0.04
    assert one.sd == pytest.approx(math.hypot(one.between, one.within / math.sqrt(2)))
    found = outlook(wanted, pilot(tmp_path / "once", factors={"send": factors["send"]}))
    assert found.metrics == ()
    assert "no cell there has several boots of several blocks" in told(found)


def test_the_command_line_tells_it_in_80_columns_and_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = ROOT / "campaigns"
    done = call("plan", file / "loopback.yaml", "--power", SAMPLE)
    assert (done.returncode, done.stderr) == (0, "")
    told = done.stdout[done.stdout.index("what this can show") :]
    assert "smallest difference: " in told
    assert max(map(len, told.replace(str(SAMPLE), "").splitlines())) <= 80
    found = json.loads(call("plan", file / "loopback.yaml", "--power", SAMPLE, "--json").stdout)
    assert {one["metric"] for one in found["power"]["metrics"]} == {"throughput", "system_demand"}
    monkeypatch.chdir(tmp_path)
    empty = call("plan", file / "loopback.yaml", "--power", "latest")
    assert empty.returncode == 2
    assert "no results below results" in empty.stderr
    refused = call("plan", file / "loopback.yaml", "--power", file)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "is not a result folder" in refused.stderr
