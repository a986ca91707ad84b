"""The level `as_is` of every setting: what a host has without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.labs import ON_LABS, head, inside, made_lab
from tests.support.local import call
from tests.support.running import stored_records

pytestmark = [*ON_LABS, pytest.mark.usefixtures("whole_kernel")]
SWAPPINESS = Path("/proc/sys/vm/swappiness")
TEXT = """\
transfer: {duration: 40ms, warmup: 10ms, congestion: cubic}
repeat: {min: 3, max: 3}
"""


def read(record: dict[str, Any], key: str, side: str = "sender") -> str:
    return str(record["settings"][side][key]["read"])


def test_pairs_of_one_kernel_leave_it_as_it_is_to_each_other(tmp_path: Path) -> None:
    before = SWAPPINESS.read_text().strip()
    level = "33" if before != "33" else "34"
    with made_lab("nbasis", ("a", "b", "c", "d")) as lab:
        pairs = [{"sender": "a", "receiver": "b"}, {"sender": "c", "receiver": "d"}]
        sweep = {"sysctl.vm.swappiness": ["as_is", level]}
        (tmp_path / "c.yaml").write_text(
            head(lab, "pairs") + TEXT + yaml.safe_dump({"pairs": pairs, "sweep": sweep})
        )
        done = call("run", tmp_path / "c.yaml", "--results", tmp_path)
        assert done.returncode == 0, done.stderr
    records = stored_records(Path(done.stdout.splitlines()[-1]))
    found = {
        (r["pair"], r["factors"]["sysctl.vm.swappiness"], read(r, "sysctl.vm.swappiness"))
        for r in records
    }
    assert found == {
        (pair, asked, now)
        for pair in ("a>b", "c>d")
        for asked, now in (("as_is", before), (level, level))
    }
    assert SWAPPINESS.read_text().strip() == before


def test_pairs_of_one_kernel_do_not_see_each_others_changes(tmp_path: Path) -> None:
    """Of a program that nobody knows, such as the one of `ab --undo`, whose mark is of a host."""
    did = tmp_path / "did"
    with made_lab("nbasis", ("a", "b", "c", "d")) as lab:
        pairs = [{"sender": "a", "receiver": "b"}, {"sender": "c", "receiver": "d"}]
        (tmp_path / "c.yaml").write_text(head(lab, "ab") + TEXT + yaml.safe_dump({"pairs": pairs}))
        words = ["--change", f"mkdir {did}", "--undo", f"rmdir {did}", "--side", "sender"]
        done = call("ab", tmp_path / "c.yaml", *words, "--results", tmp_path)
    path = Path(done.stdout.splitlines()[-1])
    assert {r["status"] for r in stored_records(path)} == {"ok"}  # else both make the folder
    assert not did.exists()


@pytest.mark.parametrize(
    ("key", "level"), [("channels", "rx: 1"), ("tso", "off"), ("mtu", "1400"), ("qdisc", "pfifo")]
)
def test_each_setting_has_it(tmp_path: Path, key: str, level: str) -> None:
    with made_lab("nbasis") as lab:
        campaign = yaml.safe_dump({"sweep": {key: ["as_is", level]}})
        (tmp_path / "c.yaml").write_text(head(lab, "each") + TEXT + campaign)
        done = call("run", tmp_path / "c.yaml", "--results", tmp_path)
    records = stored_records(Path(done.stdout.splitlines()[-1]))
    as_is = {read(r, key) for r in records if r["factors"][key] == "as_is"}
    assert len(as_is) == 1
    changed = [r for r in records if r["factors"][key] == level]
    if {"refused"} == {r["status"] for r in changed}:
        assert "as it is, so there is nothing to compare" in changed[0]["reason"]
    else:
        assert {read(r, key) for r in changed} == {level} != as_is


@pytest.mark.parametrize("side", ["", "sender."])
def test_beside_what_the_campaign_holds_it_is_that(tmp_path: Path, side: str) -> None:
    key = "sysctl.net.ipv4.tcp_retries2"
    with made_lab("nbasis") as lab:
        campaign = yaml.safe_dump(
            {"settings": {key: 9}, "sweep": {f"{side}{key}": ["as_is", 9, 12]}}
        )
        (tmp_path / "c.yaml").write_text(head(lab, "held") + TEXT + campaign)
        done = call("run", tmp_path / "c.yaml", "--results", tmp_path)
        assert inside(next(iter(lab.hosts.values())), "sysctl -n net.ipv4.tcp_retries2") == "15\n"
    records = stored_records(Path(done.stdout.splitlines()[-1]))
    levels = [(r["status"], r["factors"][f"{side}{key}"], r) for r in records]
    ok = {(level, read(r, key)) for status, level, r in levels if status == "ok"}
    assert ok == {("as_is", "9"), ("12", "12")}
    assert {level for status, level, _ in levels if status == "refused"} == {"9"}


@pytest.mark.parametrize("key", ["net.ipv4.tcp_fastopen_key", "net/ipv6/conf/lo/stable_secret"])
def test_no_record_holds_a_hosts_key(tmp_path: Path, key: str) -> None:
    campaign = yaml.safe_dump(
        {"netbench": 1, "name": "k", "sweep": {f"sysctl.{key}": ["as_is", 1]}}
    )
    (tmp_path / "c.yaml").write_text(f"hosts: {{here: local}}\n{TEXT}{campaign}")
    done = call("plan", tmp_path / "c.yaml")
    assert (done.returncode, "no record holds a host's" in done.stderr) == (2, True)
