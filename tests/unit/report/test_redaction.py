"""What a redacted report hides, and that it changes no number."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from netbench.api import load
from netbench.base.errors import StoreError
from netbench.result.journal import Journal, LeftChanged, Restored
from netbench.result.redaction import Redaction, redacted
from tests.support.local import call
from tests.support.synthetic import Record, Synth, failed

HOSTS = {
    "dtn01": {
        "ssh": "alice@dtn01.hpc.example-lab.org:2222",
        "address": "10.20.30.40",
        "run_as": "mover",
    },
    "store-7": {"ssh": "ssh://bob@gateway.else.net", "address": "fd12:3456::7"},
}
SECRETS = re.compile(
    r"dtn01|store-7|gateway|example-lab|else\.net|alice|bob\b|mover|carol|10\.20\.30|fd12|SECRET"
    r"|52:54:00|/hid"
)
OTHERS = ["lost: ", "", "boot: 6.12: ", "pump: exit status 3: ", "pump: exited with status 1: "]
FORMS = (("--letter",), ("--ktap",), ("--json",), ("--full",), ())


def spoilt(record: Record) -> Record:
    """Runs that failed, with reasons as a host may give them."""
    if 6 <= record["run"] <= 10:
        how = OTHERS[record["run"] - 6]
        status = "failed" if how else "interrupted"
        return failed(record, status, f"{how}Could not resolve hostname carol\n bob")
    if record["run"] != 5:
        return record
    return failed(
        record, "failed", "store-7: connect to 10.20.30.40 port 5201: refused\nalice@dtn01: gone"
    )


@pytest.fixture
def result(tmp_path: Path) -> Path:
    """A result that names its site in every way."""
    facts = {
        "dtn01": {
            "command_line": "root=UUID=1 ip=10.20.30.40 SECRET=1",
            "route": "via 10.20.30.1 dev eth0 src 10.20.30.40 lladdr 52:54:00:12:34:56",
            "source_mount": "xfs on /home/carol/data",
            "nic_firmware": "14.32.10.12",
        },
        "store-7": {"kernel": "6.18.1", "load": "0.10 0.20 0.30"},
    }
    made = Synth(
        pairs=("dtn01>store-7",),
        facts=facts,
        edit=spoilt,
        compare={"factor": "send", "baseline": "readwrite"},
    ).write(tmp_path / "bulk" / "20260301T000000Z-abc123")
    text = yaml.safe_dump({"netbench": 1, "name": "synthetic", "hosts": HOSTS})
    head = "# effective campaign of: --set ssh_config=acme\n# --set ssh_config=/hid\n"
    (made / "campaign.yaml").write_text(f"{head}ssh_config: /hid\n{text}")
    (made / "log.txt").write_text("dtn01: alice logged in\n")
    journal = Journal(made / "journal.jsonl")
    journal.write(Restored((1,), "dtn01"))
    journal.write(LeftChanged("dtn01", {"enx525400123456 mtu": ("1500", "9000")}))
    return made


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_no_form_of_a_report_names_the_site(
    result: Path, tmp_path: Path, form: tuple[str, ...]
) -> None:
    files = [tmp_path / name for name in ("r.html", "r.md", "r.csv", "r.xml")]
    kinds = ("--html", "--markdown", "--csv", "--junit")
    files = files if form == FORMS[0] else []
    written = [word for pair in zip(kinds, files, strict=False) for word in pair]
    open_report = call("report", result, *form)
    hidden = call("report", result, *form, *written, "--redact")
    assert (hidden.returncode, hidden.stderr) == (0, "")
    assert form != ("--full",) or SECRETS.search(open_report.stdout), "there is what to hide"
    for text in (hidden.stdout, *(file.read_text() for file in files)):
        assert SECRETS.findall(text) == []


def test_no_number_changes(result: Path, tmp_path: Path) -> None:
    ours, theirs = load(result), load(redacted(result, tmp_path / "copies"))
    numbers = ours.runs.select_dtypes("number")
    assert len(numbers.columns) > 10
    assert theirs.runs[numbers.columns].equals(numbers)
    assert ours.cells.drop(columns="pair").equals(theirs.cells.drop(columns="pair"))
    assert set(theirs.runs["pair"]) == {"host1>host2"}
    assert ours.samples.equals(theirs.samples)


PRINTED = (
    ({"kind": "ended", "machine": "jump42"}, {"kind": "ended", "machine": "redacted"}),
    ({"missing": {"all": "ssh: to carol"}}, {"missing": {"all": "redacted"}}),
    ({"reason": "x: its output: 'carol'"}, {"reason": "redacted"}),
    ({"reason": "lost: carol\ncarol"}, {"reason": "lost: redacted"}),
    *[(each, each) for each in ({"reason": ""}, {"reason": "splice", "status": "unsupported"})],
    ({"text": "carol", "unit": "s", "value": 2}, {"text": "redacted", "unit": "s", "value": 2}),
)


def test_every_file_of_the_copy_is_free_of_it(result: Path, tmp_path: Path) -> None:
    copy = redacted(result, tmp_path / "copies")
    files = [each for each in copy.rglob("*") if each.is_file()]
    names = {str(each.relative_to(copy)) for each in files}
    assert names == {
        "campaign.yaml", "facts.json", "plan.json", "records.jsonl", "samples/000001.jsonl",
        "journal.jsonl",
    }  # fmt: skip
    (left,) = load(copy).source.result.left_changed
    assert (left.host, *left.values.values()) == ("host1", ("1500", "9000"))
    assert "restored" not in (copy / "journal.jsonl").read_text()
    for each in files:
        assert SECRETS.findall(each.read_text()) == []
    (entry,) = json.loads((copy / "facts.json").read_text())["hosts"]["host1"]
    assert entry["facts"]["command_line"] == "redacted 1"
    assert entry["facts"]["nic_firmware"] == "14.32.10.12"
    assert [Redaction({}).value(each) for each, _ in PRINTED] == [told for _, told in PRINTED]
    assert entry["facts"]["source_mount"].startswith("xfs on /home/user")
    assert "acme" not in (copy / "campaign.yaml").read_text()
    document = yaml.safe_load((copy / "campaign.yaml").read_text())
    assert list(document["hosts"]) == ["host1", "host2"]
    assert document["hosts"]["host1"]["ssh"] == "user1@host1:2222"


@pytest.mark.parametrize("name", ["20261128T000000Z-4c7522", "bad-cafe", "before dtn01"])
def test_the_folder_is_called_by_no_host(result: Path, tmp_path: Path, name: str) -> None:
    """Nor by an account, in whose home a merged result may lie."""
    (named := tmp_path / "kim" / name).parent.mkdir()
    result.rename(named)
    copy = redacted(named, tmp_path / "copies")
    own = yaml.safe_load((copy / "campaign.yaml").read_text())["name"]
    assert (copy.parent.name, copy.name) == (own, name if name[0] == "2" else "result")


@pytest.mark.parametrize("name", ["/tmp/x", "../../x", "..", ".x", "a/b", "", "[1]", "a" * 300])
def test_a_name_leads_nowhere_else(result: Path, tmp_path: Path, name: str) -> None:
    file = result / "campaign.yaml"
    file.write_text(re.sub("^name: .*$", f"name: {name}", file.read_text(), flags=re.M))
    assert redacted(result, tmp_path / "copies").parent == tmp_path / "copies" / "campaign"


def test_half_a_character_is_no_defect(result: Path, tmp_path: Path) -> None:
    with (result / "records.jsonl").open("a") as records:
        records.write('{"schema": 2, "other": "\\ud800 ä"}\n')
    copy = redacted(result, tmp_path / "copies")
    assert json.loads((copy / "records.jsonl").read_text().splitlines()[-1])["other"] == "\ud800 ä"


def test_a_line_that_a_kill_cut_stays_cut(result: Path, tmp_path: Path) -> None:
    with (result / "records.jsonl").open("a") as records:
        records.write('{"schema": 2, "run"')
    copy = redacted(result, tmp_path / "copies")
    assert load(copy).source.result.truncated
    assert not (copy / "records.jsonl").read_text().endswith("\n")


@pytest.mark.parametrize(
    ("hosts", "said", "told"),
    [
        ({"sender": "local", "b": "me@default"}, "sender default b", "sender default host2"),
        ({"a": "x@b.c.d"}, "a: b at b.c.d, c.d; a-b", "host1: host1 at host1, example; host1-host1"),
        ({"n1": "n1", "n10": "n10"}, "n1>n10 n100", "host1>host2 n100"),
        ({"h": None}, "127.0.0.1 ::1 0.0.0.0 12:30:45 1.2.3", "127.0.0.1 ::1 0.0.0.0 12:30:45 1.2.3"),
        ({}, "[fe80::1%eth0]:80 198.18.0.1/24.", "[2001:db8::1%eth0]:80 192.0.2.3/24."),
        ([], "a list of hosts", "a list of hosts"),
        ({"SND1": "snd1.lab.corp.example"}, "Snd1 gate.corp.example SND1.lab.corp.example x.example",
         "host1 host8 host1 x.example"),
        *(({}, form.format("10.66.77.88"), form.format("192.0.2.2")) for form in (
            "{}:40112 connected", "{}: refused", "{}-x", "to:{}", "http://{}:80", "x{}", "[{}],", "{}.",
            "...{}.5201")),
        ({"snd1": None, "SND1": None}, "snd1 SND1 Snd1", "host1 host2 host1"),
        ({"rcv1": None}, "rcv1_eth0 a_rcv1_x rcv12", "host1_eth0 a_host1_x rcv12"),
        ({"buffer": None}, "send_buffer buffer", "send_buffer host1"),
        ({}, "10.0.0.1..10.0.0.9", "192.0.2.2..192.0.2.3"),
        ({}, "0a-00-27-4e-66-a1", "00:00:5e:00:53:01"),
        ({}, "0a:00:27:ff:fe:4e:66:a1", "00:00:5e:00:53:01"),
        *(({}, form.format("fd12::7"), form.format("2001:db8::1")) for form in (
            "{}: refused", "{}-x", "to:{}", "[{}]:80", "{}/64", "{}.")),
        *(({}, form.format("52:54:00:12:34:56"), form.format("00:00:5e:00:53:01")) for form in (
            "{}:", "{}: gone", "mac:{}", "{}-y")),
        ({}, "[::ffff:10.66.77.88]:40112 12:30:10.66.77.88", "[2001:db8::1]:40112 12:30:192.0.2.3"),
        ({"db1": {}}, r"x\ndb1\n0c:42:a1:11:22:33\tfd12::7", r"x\nhost1\n00:00:5e:00:53:01\t2001:db8::2"),
        *(({"h": {"ssh": ssh}}, f"{ssh} 2a02:1234:0:1:a4d:7fff:fe12:9", told) for ssh, told in (
            ("root@2a02:1234:0:1:a4d:7fff:fe12:7", "root@2001:db8::1 2001:db8::2"),
            ("ssh://me@[fd12:34::5]:2222", "ssh://user1@[2001:db8::1]:2222 2001:db8::2"),
            ("[fd12:34::5]:22", "[2001:db8::1]:22 2001:db8::2"))),
        ({"h": {"ssh": "root@10.66.77.88:22"}}, "root@10.66.77.88:22 66", "root@192.0.2.2:22 66"),
        ({"dtn.1": None, "dtn.2": None}, "dtn.2: chunk 1 of 2, 6.1.0", "host2: chunk 1 of 2, 6.1.0"),
        ({"3f2a9c8b7d6e": None}, "3f2a9c8b7d6e", "host1"),
        ({"a": {}, "db1": {}}, "a: fd12::a 2a02:db1::b 12:30:db1", "host1: 2001:db8::1 2001:db8::2 12:30:host2"),
        ({}, "snd (kim@node17.acme.com:22)", "snd (user1@host2:22)"),
        ({}, "a (kim@acme.com@node17:22) b (kim lee@n:22)", "a (user1@host2:22) b (user3@host4:22)"),
        ({"db1": {}}, "for kim@db1 from kim@10.0.0.5", "for user4@host1 from user4@192.0.2.2"),
        ({}, r"(kim@node17:22) (ACME\kim@n:22)", "(user1@host2:22) (user3@host4:22)"),
        ({}, "(kim@10.0.0.5:22) kim@[fd00::5]:22", "(user1@192.0.2.2:22) user1@[2001:db8::2]:22"),
        ({}, "on [/dev/mapper/dtn01--vg-root, /dev/mapper/b]", "on [/dev/mapper/mapped1, /dev/mapper/mapped2]"),
        ({}, "[a@gw1.x.net, 'b@gw2.x.net']}", "[user1@host2, 'user3@host4']}"),
        ({"gw": {"ssh": "a@gw.acme.net"}}, "ask carol@acme.net", "ask user8@example"),
        ({"guest": {"ssh": "root@vm:22"}, "vm": "vm"}, "guest>vm", "host1>host2"),
        ({"sender": {"ssh": "root@sender.corp.net"}}, "sender at sender.corp.net", "sender at host1"),
        ({"s": {}, "rx": {}}, "s>rx 1Gb/s rx_drops", "s>rx 1Gb/s rx_drops"),
        ({}, "enx525400123456 br-525400123456 ip-10-66-77-88", "enx00005e005301 br-00005e005301 ip-192.0.2.3"),
        ({}, "5254.0012.3456 in /Users/kim/x", "00:00:5e:00:53:01 in /Users/user1/x"),
        *(({}, kept, kept) for kept in ("std::fmt::f64 0000:3b:00.0", "0.10.20 1.2.3.4.5 300.1.1.1")),
    ],
)  # fmt: skip
def test_what_stands_for_what(hosts: Any, said: str, told: str) -> None:
    assert (mine := Redaction({"hosts": hosts})).text(said) == told
    assert mine.top.split("hosts: {\nalpha: 1}") == ["", "hosts:", " {\nalpha: 1}"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "word", ["a.", "-x", "x", "1.", "[1]", "n[1-9999] ", "a[1,", "n[" + "1," * 60000, "a:", "f::"]
)
def test_no_text_takes_long(word: str) -> None:
    """Nor 100 kB of the same."""
    text = word * (100_000 // len(word) + 1)
    assert Redaction({"hosts": {"a": "a1.b.example"}}).text(text)


def test_groups_links_and_notations_of_hosts_stand_for_no_site() -> None:
    hosts = {f"cern{n:02d}": {"ssh": f"root@cern{n:02d}.cern.ch"} for n in range(1, 8)}
    groups = {"t0": "cern[01-03]", "write": "cern04", "sender": "cern05"}
    redaction = Redaction(
        {"hosts": hosts, "groups": groups, "links": {"wan": "t0"}, "transfer": {"send": "write"}}
    )
    said = "t0: cern[01-03,07]; write: cpu[0-3]; {senders: t0}, wan; cern[08-09]"
    told = "group1: host[1-3,7]; write: cpu[0-3]; {senders: group1}, link1; cern[08-09]"
    assert redaction.text(said) == told
    moved = {"moved": {"cern01.net.ipv6.conf.enx525400123456.mtu": 1}}
    assert list(redaction.value(moved)["moved"]) == ["host1.net.ipv6.conf.enx00005e005301.mtu"]
    plan = {"groups": {"t0": ["cern01"]}, "links": {"wan": {"hosts": ["cern02"]}}}
    hidden = {"groups": {"group1": ["host1"]}, "links": {"link1": {"hosts": ["host2"]}}}
    assert redaction.value(plan) == hidden
    keyed = {"factors": {"cern01-irq": "cern01"}, "settings": {"sender": {"cern01-irq": 1}}}
    assert json.dumps(redaction.value(keyed)) == json.dumps(keyed).replace("cern01", "host1")
    named = {"hosts": {"10.8.1.2": {}}, "kernel": "10.8.1.2", "missing": {"firmware": "10.8.1.2"}}
    assert json.dumps(redaction.value(named)).count(redaction.text("10.8.1.2")) == 3


@pytest.mark.parametrize("levels", [["dtn01", "dtn01.hpc.example-lab.org"], ["host1", "dtn01"]])
def test_levels_that_would_melt_into_one_are_refused(
    result: Path, tmp_path: Path, levels: list[str]
) -> None:
    plan = json.loads((result / "plan.json").read_text()) | {"swept": levels}
    (result / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(StoreError, match="would have the same stand-in"):
        redacted(result, tmp_path / "copies")
    captures = {"captures": {"dtn01_time": 12, "host1_time": 99}}
    with pytest.raises(StoreError, match=r"names of captures, .*would have the same stand-in"):
        Redaction({"hosts": {"dtn01": {}}}).value(captures)


def test_facts_that_are_damaged_are_hidden_too(result: Path, tmp_path: Path) -> None:
    file = result / "facts.json"
    facts = json.loads(file.read_text())
    facts["hosts"]["dtn01"][0]["missing"] = 1
    file.write_text(json.dumps(facts))
    assert "defect" not in call("bundle", result, "--redact", "--output", tmp_path / "b.zip").stderr
