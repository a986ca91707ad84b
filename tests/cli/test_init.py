"""The campaigns that `init` writes: each runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netbench import campaign, templates
from netbench.plan.plan import Plan
from tests.support.local import Command, call
from tests.support.running import stored_records

NAMES = [one.name for one in templates.templates()]


@pytest.mark.parametrize("name", NAMES)
def test_a_template_plans_as_it_is_written(name: str, netbench: Command) -> None:
    assert netbench("init", name).returncode == 0
    made = campaign.load(f"{name}.yaml")
    hosts = ["here"] if name == "demo" else ["snd", "rcv"]
    assert (made.name, list(made.hosts), made.warnings) == (name, hosts, ())
    assert made.about.endswith("?")
    assert made.compare is not None
    assert Plan(made).seconds()[1] < 3600


@pytest.mark.root
@pytest.mark.netns
@pytest.mark.parametrize("name", [name for name in NAMES if name != "kernels"])
def test_a_template_runs_on_one_machine(name: str, netbench: Command) -> None:
    """One short run of each cell, all of which end well."""
    netbench("init", name)
    bound = "bytes=1M" if "bytes:" in Path(f"{name}.yaml").read_text() else "duration=60ms"
    sets = (
        *["lab=netns"] * (name != "demo"),
        f"transfer.{bound}",
        "transfer.warmup=20ms",
        "verify=off",
    )
    sets += ("repeat.min=1", "repeat.max=1")
    done = call("run", f"{name}.yaml", *(word for one in sets for word in ("--set", one)))
    assert done.returncode == 0, done.stderr
    (result,) = Path("results").glob("*/*")
    cells = {r["cell"] for r in stored_records(result) if r["status"] == "ok"}
    assert cells == {cell.id for cell in campaign.load(f"{name}.yaml").cells}


def test_templates_are_listed_with_what_they_ask(netbench: Command) -> None:
    words = "bulk connections cpu-cost demo files kernels latency open-loop tso zerocopy"
    assert words.split() == sorted(NAMES)
    listed = json.loads(netbench("init", "--json").stdout)
    assert [one["name"] for one in listed] == NAMES
    told = " ".join(netbench("init").stdout.split())
    assert all(one["about"] in told for one in listed)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["bluk"], "(did you mean 'bulk'?)"),
        (["bulk", "--output", "missing/bulk.yaml"], "No such file or directory; choose another pl"),
        (["--output", "a.yaml"], "needs a template"),
    ],
)
def test_a_wrong_request_is_refused_and_leaves_no_file(
    netbench: Command, words: list[str], says: str
) -> None:
    done = netbench("init", *words)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    assert not list(Path().iterdir())


def test_a_file_that_is_there_is_kept(netbench: Command) -> None:
    Path("bulk.yaml").write_text("mine")
    done = netbench("init", "bulk")
    assert (done.returncode, "--output" in done.stderr) == (2, True)
    assert Path("bulk.yaml").read_text() == "mine"
    assert netbench("init", "bulk", "--output", "other.yaml").returncode == 0
    assert Path("other.yaml").exists()
