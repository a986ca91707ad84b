"""The campaign file: what valid files mean, --set and --quick, cells, and the JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from netbench.base.errors import CampaignError
from netbench.base.units import format_size, format_time
from netbench.campaign import json_schema, load, parse, transfer_cell
from netbench.campaign.schema.file import FileKeys, file_model
from netbench.campaign.schema.keys import Keys
from netbench.campaign.schema.transfer import TransferKeys, transfer_model
from netbench.model import (
    Campaign,
    Compare,
    Host,
    Lab,
    Pair,
    Pin,
    ProfileSpec,
    Repeat,
    SettingLevel,
    Sink,
    Source,
    Tool,
    Transfer,
)
from tests.support.hand_catalogue import catalogue
from tools.docs.campaign_keys import campaign_keys

H = "netbench: 1\nname: x\n"
FULL = Path(__file__).with_name("whole_campaign.txt").read_text()


def read(text: str, *sets: str, quick: bool = False) -> Campaign:
    return parse(text, "c.yaml", sets, catalogue(), quick)


def moved(text: str, *sets: str) -> Transfer:
    """The transfer of the only cell."""
    (cell,) = read(H + text, *sets).cells
    return cell.transfer


def refusal(text: str, *sets: str) -> str:
    with pytest.raises(CampaignError) as caught:
        read(text, *sets)
    return str(caught.value)


def same(one: Campaign, other: Campaign) -> bool:
    return one._replace(text="", source="") == other._replace(text="", source="")


def test_two_lines_are_a_campaign() -> None:
    campaign = read(H)
    assert campaign.hosts == {"here": Host("here")}
    assert campaign.pairs == (Pair("here", "here"),)
    assert [cell.id for cell in campaign.cells] == ["transfer"]
    assert campaign.cells[0].transfer == Transfer(options={})
    assert (campaign.repeat, campaign.seed, campaign.verify) == (Repeat(), 1, True)
    assert campaign.meters == ("rusage", "procstat")


def as_written(settings: Mapping[str, SettingLevel]) -> dict[str, str]:
    """Levels as the campaign has them."""
    return {key: level.written for key, level in settings.items()}


def test_the_whole_format_is_understood() -> None:
    campaign = read(FULL)
    assert campaign.hosts["snd"] == Host("snd", "root@snd.example", "192.168.2.1", "eth1")
    assert as_written(campaign.settings) == {"mtu": "9000", "sysctl.net.ipv4.tcp_sack": "1"}
    assert [(f.name, f.levels) for f in campaign.factors] == [
        *(("socket_buffer", ("32K", "64K", "128K")), ("tso", ("on", "off"))),
        *(("sender.gro", ("on", "off")), ("kernel", ("vanilla", "patched"))),
    ]
    assert len(campaign.cells) == 24
    cell = campaign.cells[0]
    assert cell.id == "socket_buffer=32K,tso=on,sender.gro=on,kernel=vanilla"
    assert as_written(cell.settings) == {"tso": "on", "sender.gro": "on"}
    buffers = cell.transfer.send_buffer, cell.transfer.receive_buffer
    assert (cell.kernel, *buffers) == ("vanilla", 32768, 32768)
    assert campaign.repeat == Repeat(10, 30, 0.95, 0.025, ("throughput", "sender_cpu"), 4)
    assert campaign.profile == ProfileSpec("changed", 5 * 10**9, 997, 3)
    assert campaign.compare == Compare("kernel", "vanilla", 0.01)
    assert (campaign.seed, campaign.limit, campaign.lab) == (7, 7200 * 10**9, Lab("netns"))
    assert campaign.text == FULL


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            "source: {files: 60, size: 300K}, send: mmap",
            {"source": Source("files", "", 60, 307200), "send": "mmap"},
        ),
        ("sink: {file: /out, overwrite: yes}", {"sink": Sink("file", "/out", True)}),
        ("socket_buffer: 128K", {"send_buffer": 131072, "receive_buffer": 131072}),
        (
            "socket_buffer: 128K, send_buffer: default",
            {"send_buffer": None, "receive_buffer": 131072},
        ),
        ("streams: 1024, threads: 2", {"streams": 1024, "threads": 2}),
        ("pin: {receiver: 0}", {"pin": Pin("cpus", (), (0,))}),
        (
            "pin: {sender: [8, 0-1, 5-5], receiver: 65535}",
            {"pin": Pin("cpus", (8, 0, 1, 5), (65535,))},
        ),
        ("congestion: bbr, rate: 940Mb/s", {"congestion": "bbr", "rate": 940_000_000}),
        ("congestion: cubic or default", {"congestion": "cubic or default"}),
        ("bytes: 16G", {"duration": None, "bytes": 16 * 2**30, "warmup": 0}),
        ("bytes: 16G, warmup: 2s", {"duration": None, "bytes": 16 * 2**30, "warmup": 2 * 10**9}),
        ("warmup: 0, sample: none", {"warmup": 0, "sample": 0}),
        ("port: 5000-5010", {"port": (5000, 5010)}),
        (
            "tool: {argv: [nc, -l], pattern: '(?P<rate>.*)'}",
            {"tool": Tool("nc", ("nc", "-l"), captures=(("throughput", "(?P<rate>.*)"),))},
        ),
        (
            "send: splice, source: zero, pipe: 64K",
            {"send": "splice", "source": Source("zero"), "options": {"pipe": 65536}},
        ),
        ("send: null, receive: null", {"send": "null", "receive": "null"}),
    ],
)
def test_each_key_of_transfer(written: str, expected: dict[str, object]) -> None:
    assert moved(f"transfer: {{{written}}}\n") == Transfer(options={})._replace(**expected)  # type: ignore[arg-type]


def test_programs_that_no_setting_runs_are_told() -> None:
    programs = '{apply: "true", read: "echo x", undo: "true"}'
    text = "netbench: 1\nname: c\ntransfer: {}\ncommand: {" + ", ".join(
        f"{name}: {programs}" for name in ("held", "swept", "of_side", "unused")
    )
    text += "}\nsettings: {held: x}\nsweep: {swept: [x, y], sender.of_side: [x]}\n"
    (told,) = parse(text, "c.yaml").warnings
    assert told == "line 4: command.unused: no setting is `unused`: its programs are not run"


def test_words_stay_as_written() -> None:
    levels = "kernel: [6.10, 6.1, 0x10], tso: [on, false], sysctl.a.b: [010, 1e3]"
    campaign = read(f"{H}about: yes\nsweep: {{{levels}}}\n")
    assert campaign.about == "yes"
    written = [("6.10", "6.1", "0x10"), ("on", "false"), ("010", "1e3")]
    assert [f.levels for f in campaign.factors] == written


def test_all_errors_come_at_once_in_file_order() -> None:
    swept = "sweep:\n  tso: [no, maybe]\n  foo: [1]\n"
    text = f"transfer: {{send: sned, chunk: 0}}\nhosts: {{a: {{adress: 1}}}}\n{swept}"
    message = refusal(f"{H}{text}repeat: {{min: x}}\nsend: write\nname: y\n")
    assert [line.split(": ")[:2] for line in message.splitlines()] == [
        [f"c.yaml:{line}", key]
        for line, key in (
            *((3, "transfer.chunk"), (3, "transfer.send"), (4, "hosts.a.adress")),
            *((6, "sweep.tso[1]"), (7, "sweep.foo"), (8, "repeat.min"), (9, "send"), (10, "name")),
        )
    ]


def test_pairs_and_ip_that_are_left_out_are_the_first_two_hosts_and_their_addresses() -> None:
    assert read(H + "hosts: {a: local, b: local, c: local}\n").pairs == (Pair("a", "b"),)
    assert read(H + "hosts: {a: {address: 10.0.0.1}}\n").pairs == (Pair("a", "a"),)
    four = "a: {address: 10.0.0.1}, b: {address: 10.0.0.2}"
    assert moved("hosts: {a: {address: 'fd00::1'}, b: {address: 'fd00::2'}}\n").ip == 6
    assert moved(f"hosts: {{{four}, c: {{address: 'fd00::2'}}}}\n").ip == 4


def test_two_hosts_hold_what_each_side_asks_for_and_one_has_one_level() -> None:
    """A host of two pairs has its levels changed in between. It has one level, in whatever words."""
    hosts = "hosts: {a: {ssh: a, address: 10.0.0.1}, b: {ssh: b, address: 10.0.0.2}}\n"
    pairs = "pairs: [{sender: a, receiver: b}, {sender: b, receiver: a}]\n"
    swept = "sweep: {sender.gro: [on, off], receiver.gro: [on, off]}\n"
    held = "settings: {tso: on, receiver.tso: off}\n"
    assert len(read(f"{H}{hosts}{pairs}{held}{swept}").cells) == 4
    held = "settings: {sender.tso: yes, receiver.tso: true, tso: off}\n"
    assert len(read(f"{H}{held}sweep: {{sender.gro: [on, off]}}\n").cells) == 2


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{min: 50}", (50, 50)),
        ("{min: 20}", (20, 30)),
        ("{max: 3}", (3, 3)),
        ("{max: 40}", (10, 40)),
    ],
)
def test_one_end_of_repeat_moves_the_other(written: str, expected: tuple[int, int]) -> None:
    repeat = read(H + f"repeat: {written}\n").repeat
    assert (repeat.min, repeat.max) == expected


def test_factors_are_crossed_in_file_order_less_exclude_and_then_include() -> None:
    crossed = "sweep: {chunk: [1K, 2K], streams: [1, 2]}\nexclude: [{chunk: 1K}]\n"
    cells = read(f"{H}{crossed}include: [{{chunk: 1024, streams: 2}}]\n").cells
    assert [cell.id for cell in cells] == [
        *("chunk=2K,streams=1", "chunk=2K,streams=2", "chunk=1K,streams=2")
    ]
    alone = read(H + "include: [{send: write, bytes: 1G}, {source: zero}]\n").cells
    assert [cell.id for cell in alone] == ["send=write,bytes=1G", "source=zero"]


def test_a_swept_key_overrides_its_level_in_transfer() -> None:
    base = "transfer: {chunk: 9K, duration: 5s}\n"
    cells = read(f"{H}{base}sweep: {{chunk: [1K], duration: [1s, 2s]}}\n").cells
    moves = [(c.transfer.chunk, c.transfer.duration) for c in cells]
    assert moves == [(1024, 10**9), (1024, 2 * 10**9)]
    assert [c.transfer.duration for c in read(H + "sweep: {bytes: [1G]}\n").cells] == [None]


def test_ids_have_no_space_and_no_comma_and_stay_apart() -> None:
    sources = "[{file: '/a b'}, {file: /a%20b}, {files: 60, size: 300K}, {file: '/a,b'}, {file: '/a;b:c'}, {file: \"/a\\tb\"}]"
    cells = read(H + f"transfer: {{send: mmap}}\nsweep: {{source: {sources}}}\n").cells
    names = "file:/a%20b file:/a%2520b files:60;size:300K file:/a%2Cb file:/a%3Bb%3Ac file:/a%09b"
    assert [c.id for c in cells] == [f"source={{{name}}}" for name in names.split()]
    assert cells[2].factors == {"source": "{files: 60, size: 300K}"}


def test_options_of_a_method_reach_only_cells_that_declare_them() -> None:
    cells = read(H + "transfer: {source: zero, pipe: 64K}\nsweep: {send: [splice, write]}\n").cells
    assert [dict(c.transfer.options) for c in cells] == [{"pipe": 65536}, {}]


def test_include_and_exclude_as_the_github_documentation_shows() -> None:
    """The example of docs.github.com in words of transfer; a cell of its own has all factors."""
    text = """
sweep: {send: [write, readwrite], receive: [read, trunc]}
transfer: {tool: iperf3}
include:
  - streams: 2
  - {streams: 3, receive: read}
  - {send: write, chunk: 1K}
  - {send: sendfile, receive: read}
"""
    assert [dict(c.factors) for c in read(H + text).cells] == [
        {"send": "write", "receive": "read", "streams": "3", "chunk": "1K"},
        {"send": "write", "receive": "trunc", "streams": "2", "chunk": "1K"},
        {"send": "readwrite", "receive": "read", "streams": "3"},
        {"send": "readwrite", "receive": "trunc", "streams": "2"},
        {"send": "sendfile", "receive": "read"},
    ]


@pytest.mark.parametrize(
    ("text", "sets", "expected"),
    [
        (
            "transfer: {duration: 5s}\n",
            ["transfer.bytes=16G"],
            {"bytes": 16 * 2**30, "duration": None, "warmup": 0},
        ),
        ("transfer: {bytes: 5G}\n", ["transfer.duration=3s"], {"duration": 3 * 10**9}),
        (
            "transfer: {source: memory, send: mmap}\n",
            ["transfer.source.file=/f"],
            {"source": Source("file", "/f"), "send": "mmap"},
        ),
        ("", ["transfer.chunk=1K", "transfer.chunk=2K"], {"chunk": 2048}),
    ],
)
def test_set_puts_a_value_into_the_tree(
    text: str, sets: list[str], expected: dict[str, object]
) -> None:
    assert moved(text, *sets) == Transfer(options={})._replace(**expected)  # type: ignore[arg-type]


def test_set_reaches_keys_with_dots() -> None:
    hosts = "hosts: {a: local, b.c: local}\npairs: [{sender: a, receiver: b.c}]\n"
    campaign = read(
        f"{H}{hosts}settings: {{mtu: 1500}}\nsweep: {{sysctl.a.b: [1, 2]}}\n",
        *("hosts.b.c.address=10.0.0.1", "settings.sysctl.net.x=7", "sweep.sysctl.a.b=[1, 3]"),
    )
    assert campaign.hosts["b.c"].address == "10.0.0.1"
    assert as_written(campaign.settings) == {"mtu": "1500", "sysctl.net.x": "7"}
    assert {f.name: f.levels for f in campaign.factors} == {"sysctl.a.b": ("1", "3")}


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        (["foo"], "c.yaml: expected --set PATH=VALUE, got --set 'foo'"),
        (["transfer.chunk=64Q"], "c.yaml: transfer.chunk: expected file or a size such as 64K, 1M or 300kB, got '64Q' (from --set transfer.chunk=64Q)"),
        (["limit="], "c.yaml: limit: expected a time such as 200ms, 1s or 2m, got nothing (from --set limit=)"),
        (["pairs.3.sender=x"], "c.yaml: pairs.3.sender: expected the whole list of pairs, got an item (from --set pairs.3.sender=x)"),
        (["about=[a"], "c.yaml: this is not YAML: did not find expected ',' or ']' while parsing a flow sequence (from --set about=[a)"),
        (["about=!!str a"], "c.yaml: expected a word without a tag, got the tag !!str (from --set about=!!str a)"),
        (["repeat.min=9", "repeat.max=3"], "c.yaml: repeat.min: expected at most repeat.max, which is 3, got 9 (from --set repeat.min=9)"),
        (["transfer.send=mmap"], "c.yaml: transfer.send: send is swept, so this has no effect; expected sweep.send=[...] (from --set transfer.send=mmap)"),
    ],
)  # fmt: skip
def test_a_wrong_set_is_told_with_its_words(sets: list[str], expected: str) -> None:
    text = H + "pairs: [{sender: here, receiver: here}]\nsweep: {send: [write]}\n"
    assert refusal(text, *sets) == expected


def test_quick_is_three_short_runs_but_of_what_was_swept_or_set() -> None:
    campaign = read(H + "transfer: {bytes: 16G}\nrepeat: {min: 10, precision: 1%}\n", quick=True)
    transfer = campaign.cells[0].transfer
    assert (campaign.repeat.min, campaign.repeat.max, campaign.repeat.precision) == (3, 3, 0.01)
    assert (transfer.duration, transfer.bytes, transfer.warmup) == (10**9, None, 2 * 10**8)
    swept = read(H + "sweep: {bytes: [1G, 2G]}\n", quick=True)
    assert [c.transfer.bytes for c in swept.cells] == [2**30, 2**31]
    (cell,) = read(H + "sweep: {duration: [7s]}\n", quick=True).cells
    assert cell.transfer.duration == 7 * 10**9
    campaign = read(H, "transfer.bytes=1G", "repeat.min=2", quick=True)
    assert campaign.cells[0].transfer.bytes == 2**30
    assert (campaign.repeat.min, campaign.repeat.max) == (2, 3)


LETTERS = st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\xad")
WORDS = st.text(LETTERS, min_size=1)
SAFE = WORDS.filter(lambda w: w.strip() and ".." not in w and w.isprintable())
SIZES = st.integers(1, 2**40).map(format_size)
TIMES = st.integers(1, 10**12).map(format_time)


@st.composite
def campaigns(draw: st.DrawFn) -> dict[str, object]:
    def several(words: st.SearchStrategy[str], most: int = 3) -> list[str]:
        return draw(st.lists(words, min_size=1, max_size=most, unique=True))

    transfer = {
        "send": draw(st.sampled_from(["sendfile", "mmap", "readwrite"])),
        **{"source": {"file": draw(SAFE)}, "chunk": draw(SIZES), "warmup": draw(TIMES)},
        "socket_buffer": draw(st.integers(1, 2**28).map(format_size) | st.just("default")),
    }
    sweep = {"receive_chunk": several(SIZES), "sysctl.a.b": several(SAFE)}
    sweep["streams"] = several(st.integers(1, 128).map(str), 2)
    head = {"netbench": "1", "name": "x", "about": draw(SAFE), "limit": draw(TIMES)}
    return {**head, "transfer": transfer, "sweep": sweep}


SETS = ["transfer.bytes=3G", "order.seed=9", "sweep.tso=[on, off]", "about='a: b'"]


@given(campaigns(), st.booleans(), st.lists(st.sampled_from(SETS), unique=True))
def test_the_effective_text_gives_the_same_campaign(
    file: dict[str, object], quick: bool, sets: list[str]
) -> None:
    campaign = read(yaml.safe_dump(file, allow_unicode=True, sort_keys=False), *sets, quick=quick)
    again = read(campaign.text)
    assert same(campaign, again)
    assert again.text == campaign.text
    assert len({cell.id for cell in campaign.cells}) == len(campaign.cells)
    assert all(not set(" \n\t") & set(cell.id) for cell in campaign.cells)


@given(
    st.text(max_size=80)
    | st.text(st.sampled_from("ab:-[]{},&*!|>'\"\n #?~<@"), max_size=60).map(lambda tail: H + tail)
)
def test_any_text_is_a_campaign_or_a_campaign_error(text: str) -> None:
    try:
        campaign = read(text)
    except CampaignError:
        return
    assert campaign.cells


def test_one_transfer_from_words() -> None:
    words = ["source=/srv/a: b", "send=sendfile", "chunk=file", "repeat.min=3", "meters=[procstat]"]
    campaign = transfer_cell(words, catalogue())
    (cell,) = campaign.cells
    assert (campaign.name, cell.id) == ("transfer", "transfer")
    assert (campaign.verify, campaign.meters) == (False, ("procstat",))
    moved = Transfer(options={})._replace(source=Source("file", "/srv/a: b"), send="sendfile")
    assert cell.transfer == moved._replace(chunk=0, warmup=200_000_000)
    assert (campaign.repeat.min, campaign.repeat.max) == (3, 3)
    assert same(campaign, read(campaign.text))
    assert transfer_cell([], catalogue()).repeat == Repeat(1, 1)
    assert [len(transfer_cell(words).hosts) for words in (["lab=qemu"], [])] == [2, 1]


def test_wrong_words_of_one_transfer_are_told_together() -> None:
    with pytest.raises(CampaignError) as caught:
        transfer_cell(["chunk=1Q", "x", "sweep.send=[write]"], catalogue())
    assert str(caught.value).splitlines() == [
        "transfer: expected PATH=VALUE, got 'x'",
        "transfer: sweep: `transfer` runs one cell; write a campaign file for more",
        "transfer: transfer.chunk: expected file or a size such as 64K, 1M or 300kB, got '1Q' (from chunk=1Q)",
    ]


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + H.encode())
    campaign = load(path, catalogue=catalogue())
    assert (campaign.name, campaign.source) == ("x", str(path))
    for data, message in [
        (b"netbench: 1\nname: \xff\n", f"{path}:2: expected UTF-8 text, got the byte 0xff"),
        (b"#" * (2**20 + 1), f"{path}: expected at most 1 MiB of YAML, got more"),
        (None, "cannot be read: No such file or directory; give the path of a campaign file"),
    ]:
        path.unlink() if data is None else path.write_bytes(data)
        with pytest.raises(CampaignError, match=message):
            load(path, catalogue=catalogue())


def test_the_schema_agrees_with_the_reader() -> None:
    schema = json_schema(catalogue())
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    swept = "sweep: {send: [null, write], streams: [1, 2]}\ninclude: [{chunk: file}]\nverify: no\n"
    for text in (FULL, H, H + swept):
        assert list(check.iter_errors(yaml.safe_load(text))) == []
    for wrong in (
        *("foo: 1", "transfer: {send: sned}", "transfer: {chunk: 64Q}", "sweep: {foo: [1]}"),
        *("sweep: {send: []}", "meters: [x]", "sweep: {send: [sned]}", "exclude: [{foo: 1}]"),
        *("transfer: {streams: 0}", "transfer: {source: {fil: x}}"),
    ):
        assert list(check.iter_errors(yaml.safe_load(H + wrong))), wrong


def written(value: object) -> object:
    """A value of JSON as the campaign's reader gets it: scalars are the words that were written."""
    if isinstance(value, dict):
        return {key: written(item) for key, item in value.items()}
    return [written(item) for item in value] if isinstance(value, list) else str(value)


# the two bases are completed from a catalogue
NESTED = [model for model in Keys.__subclasses__() if model not in (FileKeys, TransferKeys)]


@pytest.mark.parametrize("model", [file_model(catalogue()), transfer_model(catalogue()), *NESTED])
def test_every_key_is_described_with_an_example_that_its_reader_takes(model: type[Keys]) -> None:
    for name, field in model.model_fields.items():
        assert field.description, name
        assert field.examples, name
        for example in field.examples:
            kind = TypeAdapter(Annotated[field.annotation, None, *field.metadata])
            kind.validate_python(written(example))


def test_the_reference_shows_the_defaults_that_hold() -> None:
    keys = {key.path: key for key in campaign_keys(catalogue())}
    fields = Transfer()._asdict()
    shown = {
        key.path.removeprefix("transfer."): key.default
        for key in keys.values()
        if key.path.startswith("transfer.") and key.path.count(".") == 1
    }
    lacking = {"bytes", "requests", "port", "pipe"}
    assert {name for name, word in shown.items() if not word} == lacking
    for name, word in shown.items():
        kind = transfer_model(catalogue()).model_validate({name: word}) if word else None
        if kind and name in fields:
            assert getattr(kind, name) == fields[name], name
    assert (keys["repeat.precision"].default, keys["repeat.min"].default) == ("2.5%", "10")
    assert keys["pairs[].sender"].required
    assert keys["hosts.NAME.boot.deadline"].type == "time"
