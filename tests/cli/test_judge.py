"""The campaign that `judge` writes. What it runs is shown in guests, by slow tests."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from netbench import campaign
from netbench.base.errors import RequestError
from netbench.kernels import judge
from netbench.kernels.judge import Question
from tests.support.kernel_repository import prepared
from tests.support.local import call

QUESTION = Question("v6.12", "series", Path("/src/linux"), "lab", "bulk", 3600.0)
HOSTS = """\
netbench: 1
name: mine
hosts:
  a: {ssh: root@a.example, address: 192.0.2.1, boot: kexec}
  b: {ssh: root@b.example, address: 192.0.2.2, boot: kexec}
settings: {mtu: 9000}
sweep: {tso: [on, off]}
"""


@pytest.mark.parametrize("suite", judge.SUITES)
def test_a_suite_is_a_whole_campaign_that_ends_in_its_time(suite: str) -> None:
    wanted = campaign.parse(judge.written(QUESTION._replace(suite=suite)).text, "judge")
    assert wanted.name == f"judge-{suite}"
    kernels = [(each.name, each.rev, each.git) for each in wanted.kernels.values()]
    assert kernels == [("base", "v6.12", "/src/linux"), ("patched", "series", "/src/linux")]
    assert (wanted.kernels["base"].config, wanted.kernels["base"].fragment) == ("tinyconfig", "lab")
    assert wanted.compare is not None
    assert (wanted.compare.factor, wanted.compare.baseline) == ("kernel", "base")
    assert wanted.limit == 3600 * 10**9


def test_little_time_costs_cells_windows_and_blocks_before_boots() -> None:
    found = []
    for minutes in (6, 12, 60):
        told = judge.written(QUESTION._replace(seconds=60.0 * minutes))
        wanted = campaign.parse(told.text, "judge")
        assert told.seconds <= 0.9 * 60 * minutes
        assert told.shown <= judge.SHOWN
        found.append((len(wanted.cells), wanted.repeat.boots, told.dropped))
    assert found == [(2, 10, ("send=sendfile",)), (4, 20, ()), (4, 32, ())]


def test_a_time_that_can_show_nothing_is_refused_and_the_one_named_is_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    question = QUESTION._replace(seconds=180.0)
    with pytest.raises(RequestError, match=r"--time 3 min 00 s can show no change of 25%: ") as why:
        judge.written(question)
    minutes = re.search(r"boots differ by 20.0%.*; give it --time (\d+)m$", str(why.value))
    assert minutes is not None
    assert judge.written(question._replace(seconds=60.0 * int(minutes[1]))).shown <= judge.SHOWN
    monkeypatch.setattr(judge, "GUEST", judge.Boots(0.01, 0.02, 5.0))
    assert campaign.parse(judge.written(question).text, "judge").repeat.boots >= 4
    with pytest.raises(RequestError, match="give it --time"):  # 4 boots at least
        judge.written(question._replace(seconds=30.0))
    monkeypatch.setattr(judge, "GUEST", judge.Boots(0.9, 0.1, 5.0))
    with pytest.raises(RequestError, match=r"guessed\); nor can 32 boots of each kernel"):
        judge.written(question)


def test_hosts_are_those_of_a_file_and_cells_those_of_another(tmp_path: Path) -> None:
    hosts, suite = tmp_path / "hosts.yaml", tmp_path / "mine.yaml"
    hosts.write_text(f"ssh_config: ./there\n{HOSTS}")
    suite.write_text(
        "netbench: 1\nname: x\nlab: netns\nhosts: {snd: {}, rcv: {}}\ntransfer: {chunk: 8K}\n"
        "sweep: {streams: [1, 4]}\nrepeat: {min: 3, metrics: [sender_cpu]}\nlimit: 5s\n"
        "settings: {sg: on}\n"
    )
    question = QUESTION._replace(
        on=str(hosts), suite=str(suite), config="/boot/config", seconds=36000.0
    )
    wanted = campaign.parse(judge.written(question).text, "judge")
    assert {name: host.ssh_config for name, host in wanted.hosts.items()} == dict.fromkeys(
        "ab", str(tmp_path / "there")
    )
    assert wanted.lab is None
    assert wanted.repeat.metrics == ("sender_cpu",)
    assert {cell.factors["streams"] for cell in wanted.cells} == {"1", "4"}
    assert "tso" not in wanted.cells[0].factors
    assert wanted.cells[0].settings == {}
    assert {"mtu", "sg"} <= wanted.settings.keys()
    assert {each.config for each in wanted.kernels.values()} == {"/boot/config"}
    with pytest.raises(RequestError, match="give --config, such as /boot/config-RELEASE"):
        judge.written(question._replace(config=""))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"suite": "no-such"}, "--suite: expected bulk, zerocopy, small, or a campaign file"),
        ({"on": "no-such"}, "--on: expected lab, or a file with `hosts:`; cannot read no-such"),
        ({"suite": "sweep: [a]"}, "expected a mapping as"),
    ],
)
def test_errors_say_what_to_give(changed: dict[str, object], why: str, tmp_path: Path) -> None:
    if ":" in str(changed.get("suite", "")):
        (tmp_path / "s.yaml").write_text(str(changed["suite"]))
        changed = {"suite": str(tmp_path / "s.yaml")}
    question = QUESTION._replace(config="c", **changed)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match=why):
        judge.written(question)


def test_it_says_what_it_can_show_before_it_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what stops it before it writes a file, which would be in the way of the next attempt."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts.yaml").write_text(HOSTS)
    prepared(tmp_path, monkeypatch).commit("int segments = ;\n", "v2")
    words = ("--base", "v2", "--patched", "v1", "--repo", "linux", "--time", "100m")
    words += ("--on", "hosts.yaml", "--config", "tinyconfig")
    for option, wrong, why in (
        ("--base", "v0", "has no revision 'v0'"),
        ("--repo", ".", "correct `git:`, or judge's --repo"),
        ("--config", "no-such/config", "no-such/config: No such file"),
        ("--time", "soon", "judge: --time: "),
    ):
        stopped = call("judge", *words, option, wrong)
        assert (stopped.returncode, why in stopped.stderr) == (2, True), stopped.stderr
        assert not Path("judge-bulk.yaml").exists()
    done = call("judge", *words)
    assert done.returncode == 2
    assert done.stdout == ""
    told = " ".join(done.stderr.split())
    assert "judge-bulk.yaml: 4 cells; `run judge-bulk.yaml` repeats it, edited or not" in told
    assert "once both kernels are built" in told
    assert "what this can show in 80% of the cases: a change of" in told
    assert re.search(r"kernel base: building [0-9a-f]{12} \(v2\)", told)
    assert re.search(r"kernel base: the build of [0-9a-f]{12} failed: tcp\.c:1", told)
    assert max(map(len, done.stderr.splitlines()[:-1])) <= 80  # the last is the error
    kept = Path("judge-bulk.yaml").read_text()
    assert kept.startswith("# written by: python -m netbench judge --base v2 --patched v1 ")
    assert "--config tinyconfig" in kept.partition("\n")[0]
    assert "failed: tcp.c:1" in call("judge", *words).stderr, "the same again takes the same file"
    Path("judge-bulk.yaml").write_text(kept + "# mine\n")
    assert "judge-bulk.yaml is there already; `run" in call("judge", *words).stderr
    Path("judge-bulk.yaml").unlink()
    os.mkfifo("judge-bulk.yaml")  # whose owner would say what is run, to who reads it again
    assert "judge-bulk.yaml is there already; `run" in call("judge", *words).stderr
