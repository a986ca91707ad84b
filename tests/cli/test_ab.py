"""`ab`: before and after a change, on hosts of a lab."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest

from netbench.cli import ab
from netbench.cli.ab import TAG
from netbench.lab.lab import Lab
from tests.support.labs import ON_LABS, RECOVERY_SECONDS, head, inside, made_lab
from tests.support.local import call, netbench_argv
from tests.support.running import stored_records, wait_for

pytestmark = [*ON_LABS, pytest.mark.usefixtures("whole_kernel")]
NAME = "net.ipv4.tcp_rmem"
CHANGE = f"sysctl -w {NAME}='4096 8192 16384'"
TEXT = """\
transfer: {chunk: 64K, congestion: cubic, duration: 60ms, warmup: 20ms}
repeat: {min: 8, max: 8}
"""


@pytest.fixture(scope="module")
def here() -> Iterator[Lab]:
    with made_lab("nbab") as lab:
        yield lab


def buffers(here: Lab) -> list[str]:
    return [inside(host, f"sysctl -n {NAME}") for host in here.hosts.values()]


@pytest.mark.parametrize(
    ("change", "more"),
    [
        (CHANGE, ["--side", "receiver"]),
        (f"{CHANGE} && true", ["--undo", f"sysctl -w {NAME}='BEFORE'"]),
    ],
    ids=["a sysctl", "a command and its undo"],
)
def test_a_change_is_made_and_undone_in_each_block_and_judged(
    here: Lab, tmp_path: Path, change: str, more: list[str]
) -> None:
    before = buffers(here)
    more = [word.replace("BEFORE", before[0].strip()) for word in more]
    compare = "compare: {factor: streams, margin: 20%}\n"
    (tmp_path / "c.yaml").write_text(head(here, "ab") + TEXT + compare)
    done = call("ab", tmp_path / "c.yaml", "--change", change, *more, "--results", tmp_path)
    assert done.returncode == 0, done.stderr
    assert buffers(here) == before
    path = Path(done.stdout.splitlines()[-1])
    records = stored_records(path)
    levels = {level for r in records for level in r["factors"].values()}
    (after,) = levels - {"as_is", "before"}
    assert len(levels) == 2
    assert [r["status"] for r in records] == ["ok"] * 16
    blocks = {r["block"] for r in records if after in r["factors"].values()}
    assert blocks == set(range(8))
    told = json.loads(call("report", path, "--json").stdout)
    (found,) = (c for c in told["comparisons"] if c["metric"] == "throughput")
    assert (found["level"], found["verdict"], found["margin"]) == (after, "worse", 0.2)


def test_a_change_of_a_dead_controller_is_undone(here: Lab, tmp_path: Path) -> None:
    before = buffers(here)
    (tmp_path / "c.yaml").write_text(head(here, "ab") + TEXT.replace("60ms", "4s"))
    words = ["ab", str(tmp_path / "c.yaml"), "--change", CHANGE, "--results", str(tmp_path)]
    with subprocess.Popen(netbench_argv(words), stderr=subprocess.DEVNULL) as process:
        wait_for(lambda: not {*buffers(here)} & {*before}, lambda: process.poll() is None, 60)
        os.kill(process.pid, 9)
    wait_for(lambda: buffers(here) == before, seconds=RECOVERY_SECONDS)


def refusals(here: Lab, tmp_path: Path, change: str) -> list[str]:
    """Reasons of what was refused, when hosts are as they were."""
    name = change.partition("=")[0].split()[-1]
    (tmp_path / "c.yaml").write_text(head(here, "ab") + TEXT)

    def values() -> list[str]:
        return [inside(host, f"sysctl -en {name}") for host in here.hosts.values()]

    before = values()
    done = call("ab", tmp_path / "c.yaml", "--change", change, "--results", tmp_path)
    path = Path(done.stdout.splitlines()[-1])
    assert values() == before
    assert call("restore", path).stdout == "nothing is left to put back\n"
    reasons = [r["reason"] for r in stored_records(path) if r["status"] == "refused"]
    assert done.returncode == bool(reasons), "what is not compared is told by the exit status too"
    return reasons


def test_a_sysctl_that_is_not_there_is_refused_before_anything(here: Lab, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(head(here, "ab") + TEXT)
    done = call("ab", tmp_path / "c.yaml", "--change", "sysctl -w net.a.b=0", "--results", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "/proc/sys/net/a/b: No such file or directory" in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("net.ipv4.tcp_available_congestion_control", "reno", "Permission denied"),
        ("net.ipv4.tcp_timestamps", "1", "it reads 1 as it is, so there is nothing to compare"),
        ("net.ipv4.ip_local_reserved_ports", "'5,6,7'", "was set to 5,6,7, but reads 5-7"),
    ],
    ids=["it cannot be written", "it reads so already", "it reads otherwise"],
)
def test_a_sysctl_that_does_not_read_as_changed_is_refused(
    here: Lab, tmp_path: Path, name: str, value: str, said: str
) -> None:
    (reason,) = refusals(here, tmp_path, f"sysctl -w {name}={value}")
    assert said in reason


def test_a_level_that_one_host_has_as_it_is_is_compared(here: Lab, tmp_path: Path) -> None:
    _, receiver = here.hosts.values()
    was = inside(receiver, "sysctl -n net.ipv4.tcp_timestamps").strip()
    inside(receiver, "sysctl -qw net.ipv4.tcp_timestamps=0")
    try:
        assert refusals(here, tmp_path, "sysctl -w net.ipv4.tcp_timestamps=0") == []
        records = stored_records(next(tmp_path.glob("ab/*/plan.json")).parent)
        read = {
            (
                side,
                *r["factors"].values(),
                r["settings"][side]["sysctl.net.ipv4.tcp_timestamps"]["read"],
            )
            for r in records
            for side in ("sender", "receiver")
        }
        assert read == {
            ("sender", "as_is", "1"),
            ("sender", "0", "0"),
            ("receiver", "as_is", "0"),
            ("receiver", "0", "0"),
        }
    finally:
        inside(receiver, f"sysctl -qw net.ipv4.tcp_timestamps={was}")


@pytest.mark.parametrize(
    ("name", "value", "along"),
    [
        ("net.ipv4.ip_forward", 1, "net.ipv4.conf.all.accept_redirects"),
        ("vm.dirty_bytes", 100000000, "vm.dirty_ratio"),
    ],
)
def test_what_a_sysctl_takes_along_is_put_back(
    here: Lab, tmp_path: Path, name: str, value: int, along: str
) -> None:
    sender = next(iter(here.hosts.values()))
    before = inside(sender, f"sysctl -n {along}")
    assert refusals(here, tmp_path, f"sysctl -w {name}={value}") == []
    assert inside(sender, f"sysctl -n {along}") == before


def test_a_change_is_made_once_a_block_and_undone_once(here: Lab, tmp_path: Path) -> None:
    """In a network namespace its mark goes with it, whatever number the next one gets."""
    (tmp_path / "c.yaml").write_text(head(here, "ab") + TEXT)
    did, tags, before = tmp_path / "did", tmp_path / "tags", [*Path("/var/lib").iterdir()]
    words = ["--change", f"echo made >> {did}; cat {TAG} >> {tags}"]
    words += ["--undo", f"echo undone >> {did}; cat {TAG} >> {tags}"]
    done = call("ab", tmp_path / "c.yaml", *words, "--side", "sender", "--results", tmp_path)
    assert done.returncode == 0, done.stderr
    lines = did.read_text().split()
    assert lines == ["made", "undone"] * (len(lines) // 2) != []
    (number,) = {*tags.read_text().split()}
    sender = next(iter(here.hosts.values()))
    assert (int(number) > 0, inside(sender, f"cat {TAG}")) == (True, "0\n")
    assert [*Path("/var/lib").iterdir()] == before
    inside(sender, "sysctl -qw net.ipv4.conf.lo.tag=7")  # of somebody else
    done = call("ab", tmp_path / "c.yaml", *words, "--side", "sender", "--results", tmp_path)
    assert (done.returncode, inside(sender, f"cat {TAG}")) == (1, "7\n")
    inside(sender, "sysctl -qw net.ipv4.conf.lo.tag=0")
    assert did.read_text().split() == lines


def test_a_change_that_fails_is_not_undone(here: Lab, tmp_path: Path) -> None:
    """It may have failed since its host has that already, which would be taken away."""
    (tmp_path / "c.yaml").write_text(head(here, "ab") + TEXT)
    did, sender = tmp_path / "did", next(iter(here.hosts.values()))
    words = ["--change", "set -e; echo no such kind >&2; false; kill $$", "--undo", f"touch {did}"]
    call("ab", tmp_path / "c.yaml", *words, "--results", tmp_path)
    path = next(tmp_path.glob("ab/*/records.jsonl")).parent
    (refused,) = (r for r in stored_records(path) if r["status"] != "ok")
    assert "no such kind\n(--undo was not run: " in refused["reason"]
    assert call("restore", path).stdout == "nothing is left to put back\n"
    assert (did.exists(), inside(sender, f"cat {TAG}")) == (False, "0\n")


def test_the_mark_of_a_machine_is_of_one_boot(tmp_path: Path) -> None:
    (_, command), *_ = ab._keys(Namespace(change=f"cd {tmp_path} && touch a", undo="rm a"), "")
    texts = (shlex.join(command[act]) for act in ("apply", "read", "undo"))
    apply, read, undo = (text.replace("{level}", "after") for text in texts)
    other = "sed -i '2s/.*/another/' /var/lib/netbench.change-*"
    script = f"mount -t tmpfs t /var/lib; cd {tmp_path}; {apply}; {read}; {other}; {read}; {apply};"
    argv = ["unshare", "-mpf", "--mount-proc", "sh", "-c", f"{script} {undo}; {read}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["after", "left by an earlier boot", "before"]
    assert "restore it (/var/lib/netbench.change-" in done.stderr
