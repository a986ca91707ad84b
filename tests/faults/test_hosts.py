"""Faults of hosts over SSH, real ones: each host is afterwards as it was, byte for byte."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import pytest
import yaml

from netbench.lab.lab import Lab
from tests.support.labs import (
    ON_LABS,
    Begin,
    back,
    begin,
    cut,
    head,
    in_flight,
    inside,
    is_held,
    kill,
    made_lab,
    mend,
    processes,
    sessions_of,
    state,
    watched,
    workers,
)
from tests.support.local import call, out
from tests.support.running import Finished, Started, with_values

__all__ = ["begin", "watched"]
pytestmark = ON_LABS

NAME = f"f{os.getpid()}"
# where a shell that reads HOSTILE would begin
PLACES = (Path.cwd(), Path("/"), Path("/tmp"), Path(pwd.getpwuid(0).pw_dir))
# two letters, so that HOSTILE can be an interface's name; and no file's there already
CANARY = next(
    name
    for name in map("".join, product(ascii_lowercase, repeat=2))
    if not any((place / name).exists() for place in PLACES)
)
# as long as an interface's name may be; it is heard bare and in quotes of either kind
HOSTILE = f"a$(>{CANARY})';>{CANARY};'"
ONCE = "verify: off\nrepeat: {min: 1, max: 1}\n"
HELD = "settings: {tso: off, mtu: 1400}\n"
SHORT = "transfer: {duration: 200ms, warmup: 10ms, sample: 0, congestion: cubic}\n"
ENDLESS = SHORT.replace("200ms", "10m")

Finish = Callable[..., Finished]


def statuses(campaign: Started) -> list[str]:
    return [record["status"] for record in campaign.records()]


@pytest.fixture(scope="module")
def pair() -> Iterator[Lab]:
    """Two hosts, for all tests that leave them in order."""
    with made_lab(NAME) as made:
        yield made


@pytest.fixture
def own() -> Iterator[Lab]:
    """Two hosts of one test alone."""
    with made_lab(f"{NAME}o") as made:
        yield made


@pytest.fixture
def finish(tmp_path: Path, watched: Callable[[Lab], None]) -> Finish:
    """Run a campaign to its end in this process: `finish(lab, text)`."""

    def run(here: Lab, text: str, block: dict[str, Any] | None = None) -> Finished:
        watched(here)
        return Finished(tmp_path, tmp_path / "r", head(here, "faults", block) + text)

    return run


# The controller


def test_hosts_are_one_controllers_and_recover_from_one_that_was_killed(
    pair: Lab, begin: Begin
) -> None:
    """By themselves; where their workers are dead too, by its journal. A second one is refused."""
    before = state(pair)
    campaign = begin(pair, ONCE + HELD + ENDLESS)
    in_flight(campaign, pair)
    second = begin(pair, ONCE + SHORT)
    code, refused = second.end()
    assert (code, second.records()) == (1, []), refused
    named = rf"faults0/{campaign.folder.name} is using this host \(process \d+ there\); wait"
    assert re.search(f"the campaign {named}", refused), refused
    assert campaign.process.poll() is None
    assert is_held(pair)
    campaign.process.kill()
    back(pair, before)
    campaign = begin(pair, ONCE + HELD + ENDLESS)
    in_flight(campaign, pair)
    kill(campaign.process.pid, *workers(pair))
    campaign.process.communicate()
    assert is_held(pair), "no process could restore anything"
    done = call("restore", campaign.folder)
    assert (done.returncode, done.stderr) == (0, "")
    said = [line.rpartition(": ")[2] for line in done.stdout.splitlines()]
    assert said.count("put back") >= 6, "four that it names, and its own on each host"
    assert set(said) <= {"put back", "is as it was"}, "the latter of what moved with the mtu"
    assert state(pair) == before
    again = call("restore", campaign.folder)
    assert (again.returncode, again.stdout) == (0, "nothing is left to put back\n")


def test_sessions_that_are_killed_are_replaced_and_what_they_held_is_put_back(
    own: Lab, begin: Begin
) -> None:
    before = state(own)
    campaign = begin(own, ONCE + HELD + SHORT.replace("200ms", "1s"))
    in_flight(campaign, own)
    kill(*(pid for host in own.hosts.values() for pid in sessions_of(host)))
    code, said = campaign.end()
    assert code == 0, said
    assert statuses(campaign) == ["interrupted", "ok"]
    assert state(own) == before


# The way to the hosts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("link", "sides"), [("uplink", {"sender", "receiver"}), ("mgmt1", {"sender"})]
)
def test_a_short_cut_of_the_management_link_leaves_the_run_alone(
    own: Lab, begin: Begin, link: str, sides: set[str]
) -> None:
    before = state(own)
    campaign = begin(own, ONCE + HELD + SHORT.replace("200ms", "10s"))
    in_flight(campaign, own)
    cut(own, link)
    time.sleep(5)  # how long it is cut
    mend(own, link)
    code, said = campaign.end()
    assert code == 0, said
    (record,) = campaign.records()
    assert (record["status"], record["reason"]) == ("ok", "")
    assert set(record["cut"]) == sides
    assert all(4.5 < seconds < 10 for seconds in record["cut"].values())
    assert state(own) == before


@pytest.mark.slow
def test_a_long_cut_of_the_management_link_interrupts_the_run_which_is_repeated(
    own: Lab, begin: Begin
) -> None:
    before = state(own)
    campaign = begin(own, ONCE + HELD + SHORT.replace("200ms", "20s"))
    in_flight(campaign, own)
    began = time.monotonic()
    cut(own)
    back(own, before)
    assert campaign.process.poll() is None
    time.sleep(max(0.0, began + 40 - time.monotonic()))  # how long it is cut
    mend(own)
    in_flight(campaign, own)
    assert is_held(own), "settings are applied anew"
    code, said = campaign.end()
    assert code == 0, said
    first, second = campaign.records()
    assert (first["status"], second["status"], second["reason"]) == ("interrupted", "ok", "")
    assert "fell silent for 10 s" in first["reason"]
    for side in ("sender", "receiver"):
        read = {key: value["read"] for key, value in second["settings"][side].items()}
        assert (read["mtu"], read["tso"]) == ("1400", "off")
    assert state(own) == before


def test_a_data_link_that_goes_down_fails_its_run_and_no_other(pair: Lab, begin: Begin) -> None:
    before = state(pair)
    text = "settings: {tso: off}\nsweep: {pin: [none, same]}\n" + SHORT.replace("200ms", "1s")
    campaign = begin(pair, ONCE + text, with_values(run__transfer__SLACK_SECONDS=1.0))
    in_flight(campaign, pair)
    inside(pair.hosts["rcv"], "ip link set data0 down")
    try:
        campaign.await_records(1)
    finally:
        inside(pair.hosts["rcv"], "ip link set data0 up")
    code, said = campaign.end()
    assert code == 0, said
    first, *others = campaign.records()
    assert first["status"] == "failed"
    assert "check the path between the data addresses" in first["reason"]
    assert f"failed: {first['reason']}" in said
    assert sorted(r["cell"] for r in others if r["status"] == "ok") == ["pin=none", "pin=same"]
    assert state(pair) == before


def test_a_host_whose_ssh_server_dies_is_lost(own: Lab, begin: Begin) -> None:
    before = state(own)
    campaign = begin(
        own, ONCE + HELD + ENDLESS, with_values(run__worker_pool__RECONNECT_SECONDS=1.0)
    )
    in_flight(campaign, own)
    kill(*(pid for host in own.hosts.values() for pid in processes(host, "sshd")))
    back(own, before)
    code, said = campaign.end()
    assert code == 1
    assert statuses(campaign) == ["interrupted"]
    assert "the worker is gone" in campaign.records()[0]["reason"]
    assert "no lost host was back within 1 s" in said
    assert f"`resume {campaign.folder}` continues it" in said


# Hosts in trouble


# Words that a shell would read


@pytest.fixture
def no_canary(tmp_path: Path) -> Iterator[None]:
    """No shell has read HOSTILE, neither here nor in the place where a host's shell begins."""
    yield
    found = [place / CANARY for place in PLACES if (place / CANARY).exists()]
    found += tmp_path.rglob(CANARY)
    for canary in found:
        canary.unlink()
    assert found == []


@pytest.mark.usefixtures("no_canary")
def test_names_of_interfaces_and_files_meet_no_shell(own: Lab, tmp_path: Path) -> None:
    """Both interfaces and both files have such names, and the campaign works with them."""
    for host in own.hosts.values():
        for words in (("data0", "down"), ("data0", "name", HOSTILE), (HOSTILE, "up")):
            out("ip", "-n", host.namespace, "link", "set", *words)
    source = tmp_path / f'from {HOSTILE} `>{CANARY}` ";>{CANARY};"'
    sink = tmp_path / f"to {HOSTILE} |>{CANARY}"
    source.write_bytes(os.urandom(1 << 20))
    block = own.block()
    for host in block["hosts"].values():
        host["interface"] = HOSTILE
    files = {"source": {"file": str(source)}, "sink": {"file": str(sink)}}
    transfer = {**files, "bytes": "1M", "send": "sendfile"}
    text = yaml.safe_dump({"netbench": "1", "name": "hostile", **block, "transfer": transfer})
    before = state(own, HOSTILE)
    campaign = Finished(tmp_path, tmp_path / "r", text + ONCE + HELD)
    code, said = campaign.end()
    assert code == 0, said
    (record,) = campaign.records()
    notes = record["settings"]["sender"]
    assert (notes["tso"]["read"], notes["mtu"]["read"]) == ("off", "1400")
    assert sink.read_bytes() == source.read_bytes()
    assert state(own, HOSTILE) == before


@pytest.mark.usefixtures("no_canary")
@pytest.mark.parametrize(
    ("key", "name", "value"),
    [
        ("settings", f"sysctl.net.ipv4.tcp_sack;{HOSTILE}", "0"),
        ("sweep", "sysctl.net.ipv4.tcp_congestion_control", ["reno", f"reno {HOSTILE}\n>{CANARY}"]),
        ("hosts", "snd", {"ssh": f"-oProxyCommand=sh>{CANARY}"}),
        ("hosts", "snd", {"ssh": f"root@$(>{CANARY})"}),
        ("hosts", "snd", {"interface": f"a b\n{HOSTILE}"}),
        ("transfer", "source", {"file": f"/nowhere/{HOSTILE}\n$(>{CANARY})"}),
    ],
    ids=range(6),
)
def test_words_that_mean_nothing_are_refused_in_words(
    pair: Lab, finish: Finish, key: str, name: str, value: Any
) -> None:
    transfer = {"duration": "100ms", "warmup": "10ms", "congestion": "cubic"}
    block: dict[str, Any] = {**pair.block(), "transfer": transfer}
    known = block.setdefault(key, {}).get(name)
    block[key][name] = known | value if isinstance(known, dict) else value
    campaign = finish(pair, ONCE, block=block)
    code, said = campaign.end()
    refused = [record["status"] for record in campaign.records()].count("refused")
    assert code in (1, 2) or refused, said
    assert "defect" not in said
    assert "Traceback" not in said


# The network between them


STRANGER = """
import socket, sys, time
while True:
    try:
        guest = socket.create_connection((sys.argv[1], int(sys.argv[2])), 1)
        break
    except OSError:
        time.sleep(0.0002)
guest.settimeout(20)
try:
    guest.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
    print(len(guest.recv(1 << 16)))
except ConnectionError:
    print(0)
"""


def listening(here: Lab) -> dict[str, list[str]]:
    return {
        host.name: sorted(inside(host, "ss -Hltunp").splitlines()) for host in here.hosts.values()
    }


def test_an_unknown_client_at_the_data_port_gets_nothing_and_no_port_stays_open(
    pair: Lab, begin: Begin
) -> None:
    before = listening(pair)
    snd, rcv = pair.hosts["snd"], pair.hosts["rcv"]
    words = ("-c", STRANGER, rcv.address, "15077")
    argv = ("ip", "netns", "exec", snd.namespace, sys.executable, *words)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as client:
        try:
            ported = SHORT.replace("transfer: {", "transfer: {port: 15077, ")
            campaign = begin(pair, f"verify: off\nrepeat: {{min: 3, max: 3}}\n{ported}")
            code, said = campaign.end()
            assert code == 0, said
            assert client.communicate(timeout=30)[0] == "0\n"
        finally:
            client.kill()
    assert statuses(campaign) == ["ok"] * 3
    assert sum([r["receiver"].get("rejected_connections", 0) for r in campaign.records()]) == 1
    assert listening(pair) == before
