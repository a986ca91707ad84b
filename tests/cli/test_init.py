"""The campaigns that `init` writes: each runs, and those with hosts filled in are accepted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from netbench import campaign, starter
from netbench.base.errors import RequestError
from netbench.engine.worker import Worker
from netbench.lab.lab import Lab
from netbench.model import Host
from netbench.plan.plan import Plan
from netbench.run.discovery import FoundHost, Impossible, _addresses
from tests.support.labs import made_lab
from tests.support.local import Command, call
from tests.support.running import stored_records

NAMES = [one.name for one in starter.templates()]
SHORT = ("repeat.min=1", "repeat.max=1", "transfer.warmup=20ms", "verify=off")
SETS = [word for one in SHORT for word in ("--set", one)]


@pytest.fixture(scope="module")
def hosts() -> Iterator[Lab]:
    """Two hosts with sshd, whose logins are over another link than their data."""
    with made_lab(f"i{os.getpid()}", "ab") as made:
        yield made


def run_short(file: str, *sets: str) -> None:
    """One short run of each cell, all of which end well."""
    bound = "bytes=1M" if "bytes:" in Path(file).read_text() else "duration=60ms"
    words = [*SETS, "--set", f"transfer.{bound}", *sets]
    done = call("run", file, *words)
    assert done.returncode == 0, done.stderr
    (result,) = Path("results").glob("*/*")
    records = stored_records(result)
    cells = {record["cell"] for record in records if record["status"] == "ok"}
    assert cells == {cell.id for cell in campaign.load(file).cells}


@pytest.mark.parametrize("name", NAMES)
def test_a_template_plans_as_it_is_written(name: str, netbench: Command) -> None:
    assert netbench("init", name).returncode == 0
    made = campaign.load(f"{name}.yaml")
    assert (made.name, list(made.hosts), made.warnings) == (name, ["snd", "rcv"], ())
    assert made.about.endswith("?")
    assert made.compare is not None
    assert Plan(made).seconds()[1] < 3600
    assert netbench("plan", f"{name}.yaml").returncode == 0


@pytest.mark.root
@pytest.mark.netns
@pytest.mark.parametrize("name", [name for name in NAMES if name != "kernels"])
def test_a_template_runs_on_one_machine(name: str, netbench: Command) -> None:
    netbench("init", name)
    run_short(f"{name}.yaml", "--set", "lab=netns")


def test_templates_are_listed_with_what_they_ask(netbench: Command) -> None:
    assert {"bulk", "tso", "kernels", "zerocopy", "files", "cpu-cost"} == set(NAMES)
    listed = json.loads(netbench("init", "--json").stdout)
    assert [one["name"] for one in listed] == NAMES
    told = " ".join(netbench("init").stdout.split())
    assert all(one["about"] in told for one in listed)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["bluk"], "(did you mean 'bulk'?)"),
        (["bulk", "--output", "missing/bulk.yaml"], "missing/bulk.yaml: No such file or directory"),
        (["bulk", "--output", "missing/bulk.yaml"], "choose another place with --output"),
        *((["bulk", "--hosts", hosts], "two or more") for hosts in ("", "one", "one,", "a,,b")),
        (["--hosts", "a,b"], "needs a template"),
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


def test_a_host_that_cannot_be_reached_leaves_no_file(netbench: Command) -> None:
    done = netbench("init", "bulk", "--hosts", "nowhere.invalid,local")
    assert done.returncode == 1
    assert "nowhere.invalid" in done.stderr
    assert not Path("bulk.yaml").exists()


@pytest.mark.root
@pytest.mark.netns
def test_found_hosts_have_their_data_link_and_run(hosts: Lab, netbench: Command) -> None:
    a, b = hosts.hosts.values()
    words = ("--hosts", f"{a.ssh},{b.ssh}", "--ssh-config", hosts.ssh_config)
    done = netbench("init", "tso", *words)
    assert done.returncode == 0, done.stderr
    text = Path("tso.yaml").read_text()
    assert "interface data0: veth, MTU 1500" in text
    made = campaign.load("tso.yaml")
    addresses = {name: host.address for name, host in made.hosts.items()}
    assert addresses == {"snd": a.address, "rcv": b.address}
    assert netbench("check", "tso.yaml").returncode == 0
    run_short("tso.yaml")


def test_what_cannot_run_is_commented_out_with_its_reason() -> None:
    text = starter.template("zerocopy").text
    why = Impossible("send", "uring_zc", "snd", "io_uring is\nswitched off")
    made = starter.without(text, [why])
    assert "    # - uring_zc  # cannot run on snd: io_uring is switched off\n" in made
    sends = {cell.factors["send"] for cell in campaign.parse(made, "x").cells}
    assert sends == {"write", "sendfile", "zerocopy"}
    assert "zerocopy" in {cell.factors["receive"] for cell in campaign.parse(made, "x").cells}


def test_a_baseline_that_cannot_run_is_an_error() -> None:
    why = [Impossible("tso", "off", "snd", "it is fixed")]
    with pytest.raises(RequestError, match=r"tso: off cannot run.* snd: it is fixed"):
        starter.without(starter.template("tso").text, why)


def test_what_a_host_says_of_itself_is_no_key_of_the_campaign() -> None:
    text = starter.template("kernels").text
    two = [
        FoundHost(Host(name), ("NIC\ndefaults: {boot: {command: [sh]}}",)) for name in ("a", "b")
    ]
    assert "\ndefaults" not in starter.filled(text, two, "")


@pytest.mark.parametrize(
    "printed",
    [
        "x",
        "[" * 100_000,
        '["x"]',
        '{"a": 1}',
        '[{"addr_info": [{"local": "10.0.0.1"}]}]',
        '[{"ifname": 1}]',
    ],
)
def test_what_is_no_output_of_ip_is_refused(printed: str) -> None:
    class Answering:
        host = "a"

        def operate(self, *_: object) -> list[str]:
            return [printed, ""]

    with pytest.raises(RequestError, match="`ip -json` printed no JSON"):
        _addresses(cast("Worker", Answering()))
