"""Tools as data: units that programs print, patterns, placeholders, limits and parsers."""

from __future__ import annotations

import re

import pytest

from netbench.base.errors import CampaignError
from netbench.base.names import COLUMNS
from netbench.base.units import printed_rate, printed_size, printed_time
from netbench.campaign import parse
from netbench.model import Pin, Sink, Source, Tool, Transfer
from netbench.plan.plan import Plan
from netbench.plan.plan_json import plan_json
from netbench.result.record import ToolReading
from netbench.tables.table_frames import OUTCOME, RUN
from netbench.tools.adaptors import TOOLS, adaptor_of
from netbench.tools.own import SEARCHED, TEXT_MAX, OwnTool, read
from netbench.tools.tool import Output, Place

PLACE = Place("10.0.0.2", 5000, (0,), (1,))
FILE = Source("file", "/srv/in")


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("9.41 Gb/s", 9.41e9),
        ("9.41 Gbits/sec", 9.41e9),
        ("941 Mbit/s", 941e6),
        ("9415.03 10^6bits/s", 9415.03e6),
        ("112 MB/s", 112e6 * 8),
        ("112 MBytes/sec", 112 * 2**20 * 8),
        ("1.5e3 KBytes/sec", 1500 * 1024 * 8),
    ],
)
def test_rates_as_programs_print_them(text: str, bits: float) -> None:
    assert printed_rate(text) == pytest.approx(bits)


def test_sizes_and_times_as_programs_print_them() -> None:
    assert [printed_size(t) for t in ("7", "1 kB", "1K", "1 KBytes", "1.5 MiB", "2 bytes")] == [
        7, 1000, 1024, 1024, 3 * 2**19, 2,
    ]  # fmt: skip
    assert [printed_time(t) for t in ("10.00", "5 ms", "5 msec", "2 us", "2 µs", "1 min")] == [
        10.0, 0.005, 0.005, 2e-6, 2e-6, 60.0,
    ]  # fmt: skip
    wrong = [(printed_size, "5 Mb"), (printed_size, "-1"), (printed_time, "5 parsecs")]
    rates = ("9.41", "fast", "", "9.41 Gb", "1 s", "-1 Gb/s", "nan Gb/s", "1 Xb/s")
    for read_as, text in [*wrong, *((printed_rate, text) for text in rates)]:
        with pytest.raises(ValueError, match="expected a"):
            read_as(text)


def test_captures_are_numbers_in_base_units_with_what_was_printed() -> None:
    captures = (
        ("throughput", r"rate (?P<rate>\S+ \S+)"),
        ("latency_p99", r"p99=(?P<value>[\d.]+)(?P<unit>\w+)"),
        ("requests", r"(?P<value>\d+) (?P<unit>req/s)"),
        ("transactions", r"(?P<value>\d+ req/s)"),
        ("flows", r"flows: (?P<value>\d+)"),
    )
    said = read(captures, "rate 9.4 Gbits/sec\np99=2.5ms 7 req/s\n", "", "flows: 3")
    assert said.tool == ToolReading(rate="9.4 Gbits/sec")
    found = {name: (c.text, c.value, c.unit) for name, c in said.captures.items()}
    assert found == {
        "throughput": ("rate 9.4 Gbits/sec", None, ""),
        "latency_p99": ("p99=2.5ms", 2500.0, "µs"),
        "requests": ("7 req/s", 7.0, "req/s"),
        "transactions": ("7 req/s", 7.0, "1/s"),
        "flows": ("flows: 3", 3.0, ""),
    }
    pattern = r"(?m)^throughput=(?P<rate>[\d.]+)\s+throughput_units=(?P<unit>\S+)"
    said = read([("throughput", pattern)], "throughput=941.20\nthroughput_units=Mbit/s\n")
    assert said.tool == ToolReading(rate="941.20 Mbit/s"), "a unit in a group of its own"
    pattern = r"(?P<bytes>\S+ \w+) in (?P<seconds>\S+ s)"
    said = read([("throughput", pattern)], "1.5 MBytes in 0.5 s")
    assert said.tool == ToolReading(3 * 2**19, 0.5)


@pytest.mark.parametrize(
    ("pattern", "output"),
    [
        ("Rate: (?P<rate>.*)", "Rate: "),
        (r"(?P<bytes>\d+)? in (?P<seconds>\S+)", "lost in 3"),
        ("(?P<rate>.+)", "941"),
        ("(?P<rate>.+)", "1e999 Gb/s"),
        (r"(?P<bytes>\d+) in (?P<seconds>\S+)", "5 in 1e-320"),
        (r"v=(?P<value>\S+)", "v=1e999"),
        *(("(?P<value>.+)", number) for number in ("9,41", "0x1F", "3 / 4", "1_000")),
    ],
)
def test_an_odd_line_fails_its_run_alone(pattern: str, output: str) -> None:
    metric = "v" if "value" in pattern else "throughput"
    with pytest.raises(ValueError, match=f"{metric}: no number where the pattern matches"):
        read([(metric, pattern)], output)


@pytest.mark.parametrize("extra", range(12))
def test_a_line_that_the_search_begins_in_is_no_line(extra: int) -> None:
    """Its end would be read as a number."""
    text = "9415.23 Mb/s\n" * (SEARCHED // 12) + "x" * extra + "\n"
    found = read([("throughput", r"(?m)^(?P<rate>[\d.]+ Mb/s)$")], text)
    assert found.tool == ToolReading(rate="9415.23 Mb/s")


@pytest.mark.parametrize(("streams", "fails"), [(1, True), (2, False)])
def test_results_of_a_server_are_no_more_than_streams(streams: int, fails: bool) -> None:
    """Another one's may come first."""
    tool = OwnTool(Tool("mine", captures=(("throughput", r"(?P<rate>\d+ Mb/s)"),)))
    output = Output("done", "", "goodput 1 Mb/s\ngoodput 900 Mb/s\n")
    if fails:
        with pytest.raises(ValueError, match="printed 2 results: something else connected"):
            tool.reading(Transfer(streams=streams), output)
    else:
        assert tool.reading(Transfer(streams=streams), output).tool == ToolReading(rate="1 Mb/s")


def test_what_a_message_and_a_record_keep_of_megabytes_is_short() -> None:
    flood = "\x1b[31m" + "x" * 2_000_000
    with pytest.raises(ValueError, match="does not match") as error:
        read([("throughput", "(?P<rate>never)")], flood)
    assert len(str(error.value)) < 400
    assert "\x1b" not in str(error.value)
    assert (
        len(read([("n", r"x+(?P<value>\d)")], flood + "\nx" + "x" * 999 + "7").captures["n"].text)
        == TEXT_MAX
    )


MINE = Tool(
    "mine",
    ("mine", "--to={address}:{port}", "{seconds}", "{chunk}", "{streams}", "{file}", "{other}"),
    ("serve", "{port}", "{file}", "{receiver_cpu}", "{sender_address}"),
    captures=(("throughput", "(?P<rate>.*)"),),
)


def test_placeholders_are_replaced_once() -> None:
    cell = Transfer(
        tool=MINE, source=Source("file", "/a {port}"), sink=Sink("file", "/out"), streams=3,
        duration=500 * 10**6, pin=Pin("same"),
    )  # fmt: skip
    lines = adaptor_of(MINE).commands(cell, PLACE)
    assert lines.client[:5] == ("mine", "--to=10.0.0.2:5000", "0.5", "65536", "3")
    assert lines.client[5:] == ("/a {port}", "{other}")
    assert lines.server == ("serve", "5000", "/out", "1", "0.0.0.0")
    several = PLACE._replace(receiver_cpus=(2, 4), source="10.0.0.1")
    assert adaptor_of(MINE).commands(cell, several).server[-2:] == ("2,4", "10.0.0.1")
    assert adaptor_of(MINE).unable(cell, False) == ""


def test_a_cell_without_what_a_placeholder_stands_for_is_unsupported() -> None:
    why = OwnTool(MINE).unable(Transfer(tool=MINE, bytes=5, duration=None), False)
    assert why.startswith("mine cannot do this cell: its command line has {seconds}")
    assert "{file}, and the cell has no file there" in why
    assert "{receiver_cpu}, and the cell has no CPU for the receiver" in why


LIMITS = [
    ("iperf3", {"send": "splice"}, "it sends by write or sendfile"),
    ("iperf3", {"receive_buffer": 65536}, "one size of buffer"),
    ("iperf3", {"source": FILE, "cache": "cold"}, "page cache"),
    ("dd", {}, "write `bytes`"),
    ("dd", {"bytes": 5, "rate": 10}, "no rate"),
    ("dd", {"bytes": 5, "sink": Sink("file", "/o"), "fsync": "after"}, "within its time"),
    ("dd", {"bytes": 5, "sink": Sink("file", "/o"), "fsync": "window", "direct": True}, ""),
    ("iperf3", {"direct": True}, "no direct I/O"),
    ("dd", {"bytes": 5, "source": FILE, "sink": Sink("file", "/o")}, "files of two"),
    ("dd", {"bytes": 5, "receive": "splice"}, "by read and write"),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "cell", "reason"), LIMITS)
def test_what_a_tool_cannot_do_is_said_before_a_run(
    tool: str, cell: dict[str, object], reason: str
) -> None:
    transfer = Transfer(tool=Tool(tool))._replace(**cell)  # type: ignore[arg-type]
    why = TOOLS[tool].unable(transfer, one_host=False)
    assert reason in why
    assert why.startswith(f"{tool} cannot do this cell: ") if reason else not why


def test_the_command_lines_of_iperf3() -> None:
    transfer = Transfer(
        send="sendfile", source=Source("file", "/a b"), chunk=131072, send_buffer=65536, congestion="cubic", rate=10**9, streams=4,
        tool=Tool("iperf3"), duration=1500 * 10**6, warmup=200 * 10**6,
    )  # fmt: skip
    iperf3 = TOOLS["iperf3"]
    made = iperf3.commands(transfer, PLACE)
    assert " ".join(made.client) == (
        "iperf3 -c 10.0.0.2 -p 5000 -l 131072 -P 4 -w 65536 -b 250000000 -F /a b -J -i 60 -t 2 -O 1 -C cubic -Z -A 0"
    )
    words = " ".join(iperf3.commands(transfer._replace(bytes=10), Place("10.0.0.2", 5000)).client)
    assert " -n 10 " in words
    assert " -i 60" in words, "with -n and -i 0, iperf3 3.18 never ends"
    server = ("iperf3", "-s", "-1", "-B", "10.0.0.2", "-p", "5000", "--forceflush")
    assert made.server == (*server, "-A", "1")
    # Several CPUs it cannot pin to itself: netbench does. A side that is not pinned runs anywhere.
    for pins, client, pinned in (
        (((), (1,)), False, (*server, "-A", "1")),
        (((1,), ()), True, server),
        (((0, 2), (1,)), False, server),
    ):
        lines = iperf3.commands(transfer, Place("10.0.0.2", 5000, *pins, "10.0.0.1"))
        assert ("-A" in lines.client, lines.server) == (client, pinned)
        assert "-B 10.0.0.1" in " ".join(lines.client)
    assert not lines.pinned


def test_the_command_lines_of_dd() -> None:
    copy = Transfer(tool=Tool("dd"), bytes=100, duration=None, source=Source("zero"))
    reads = TOOLS["dd"].commands(copy._replace(source=FILE), PLACE)
    assert " ".join(reads.client) == (
        "env LC_ALL=C dd if=/srv/in of=/dev/null bs=65536 count=100 iflag=count_bytes,fullblock"
    )
    writes = TOOLS["dd"].commands(copy._replace(sink=Sink("file", "/out")), PLACE)
    assert (reads.on_receiver, writes.on_receiver) == (False, True)
    assert "of=/out" in writes.client
    synced = copy._replace(sink=Sink("file", "/out"), direct=True, fsync="window")
    words = TOOLS["dd"].commands(synced, PLACE).client[-3:]
    assert words == ("iflag=count_bytes,fullblock", "oflag=direct", "conv=fsync")
    direct = TOOLS["dd"].commands(copy._replace(source=FILE, direct=True), PLACE)
    assert direct.client[-1] == "iflag=count_bytes,fullblock,direct"


@pytest.mark.parametrize(
    ("tool", "output", "said"),
    [
        ("iperf3", Output('{"end": {"sum_received": {"bytes": 9, "seconds": 2}}}'), (9, 2.0)),
        ("dd", Output("", "1+0 records in\n1+0 records out\n9 bytes copied, 0.5 s, 18 B/s\n"), (9, 0.5)),
        ("dd", Output("", "9 bytes (9 B, 9 B) copied, 1.5e-05 s, 6 kB/s\n"), (9, 1.5e-05)),
    ],
)  # fmt: skip
def test_what_tools_print(tool: str, output: Output, said: tuple[int, float]) -> None:
    cell = Transfer(tool=Tool(tool), bytes=9, duration=None, streams=1)
    assert TOOLS[tool].reading(cell, output).tool == ToolReading(*said)


SUMS = '{"end": {"sum_received": {"bytes": BYTES, "seconds": SECONDS}}}'


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        *(("iperf3", SUMS.replace("BYTES", n).replace("SECONDS", "1")) for n in ("-5", "NaN", "9" * 30)),
        *(("iperf3", SUMS.replace("BYTES", "5").replace("SECONDS", n)) for n in ("0", "1e-320", "Infinity")),
        ("dd", "9 bytes copied, 1e999 s"),
    ],
)  # fmt: skip
def test_what_nothing_can_have_moved_is_no_result(tool: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"no result|no time"):
        TOOLS[tool].reading(Transfer(tool=Tool(tool), bytes=9), Output(text, text))


@pytest.mark.parametrize("tool", list(TOOLS))
@pytest.mark.parametrize(
    "text", ["", "[" * 5000, '{"end": 5}', "\x00\x1b]0;\x07", "9 bytes copied, 0 s"]
)
def test_output_that_is_no_result_fails_the_run(tool: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"no result|no time") as error:
        TOOLS[tool].reading(Transfer(tool=Tool(tool), bytes=9), Output(text, text))
    assert not re.search("[\x00-\x08\x1b]", str(error.value))


# `tools:` of a campaign


HEAD = "netbench: 1\nname: t\n"
RATE = "captures: {throughput: '(?P<rate>.*)'}"
MINE_KEYS = f"tools: {{mine: {{client: [a, '{{address}}'], server: 'b {{port}}', {RATE}}}}}\n"


def test_a_tool_is_a_level_by_its_name_wherever_tool_can_stand() -> None:
    mine = Tool("mine", ("a", "{address}"), ("b", "{port}"), "", (("throughput", "(?P<rate>.*)"),))
    for use in (
        "transfer: {tool: mine}\n",
        "sweep: {tool: [mine, dd]}\n",
        "sweep: {send: [write]}\ninclude: [{send: write, tool: mine}]\n",
    ):
        read = parse(HEAD + MINE_KEYS + use, "t.yaml")
        assert read.cells[0].transfer.tool == mine
        assert read.cells[0].factors.get("tool", "mine") == "mine"
    assert (
        "tool=mine" in parse(HEAD + MINE_KEYS + "sweep: {tool: [mine, dd]}\n", "t.yaml").cells[0].id
    )


def line(*argv: str) -> str:
    """A command line in place of a tool's name."""
    return f"{{argv: [{', '.join(argv)}], pattern: '(?P<rate>.*)'}}"


FIRST, SECOND = line("sh", "-c", "echo 1"), line("/bin/sh", "-c", "echo 2")


def test_a_command_line_is_a_level_by_the_name_of_its_program_wherever_it_stands() -> None:
    other = line("'a b'", "'1, 2'")
    text = f"""{HEAD}sweep: {{tool: [none, {FIRST}, {other}], streams: [1, 2]}}
exclude: [{{tool: {other}}}, {{tool: {FIRST}, streams: 2}}, {{tool: none}}]
include: [{{tool: {other}, streams: 1, chunk: 4K}}]
compare: {{factor: tool, baseline: sh, control: false}}
"""
    read = parse(text, "t.yaml")
    assert [cell.id for cell in read.cells] == [
        "tool=sh,streams=1",
        "tool=a%20b,streams=1,chunk=4K",
    ]
    assert plan_json(Plan(read))["tools"].keys() == {"sh", "a b"}  # type: ignore[attr-defined]


@pytest.mark.parametrize("clash", [f"{FIRST}, {SECOND}", line("/opt/iperf3"), line("none")])
def test_a_command_line_with_the_name_of_another_tool_is_refused(clash: str) -> None:
    with pytest.raises(CampaignError, match="expected a name of its own, below tools:"):
        parse(f"{HEAD}sweep: {{tool: [{clash}]}}\n", "t.yaml")


def test_its_metrics_can_be_those_that_close_cells() -> None:
    tools = MINE_KEYS.replace(RATE, RATE.replace("}", ", p99: '(?P<value>.)'}"))
    text = HEAD + tools + "repeat: {metrics: [throughput, p99]}\n"
    assert parse(text, "t.yaml").repeat.metrics == ("throughput", "p99")


def test_no_metric_of_a_tool_has_the_name_of_a_column() -> None:
    assert {*RUN, *OUTCOME} <= {*COLUMNS}
