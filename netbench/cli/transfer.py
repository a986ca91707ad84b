"""`transfer`: one cell without a campaign file."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netbench import api
from netbench.base.errors import RequestError
from netbench.base.names import PROGRAM, shell_word
from netbench.cli.output import say, table, tell
from netbench.cli.report import render
from netbench.cli.verb import add_json

if TYPE_CHECKING:
    from netbench.run.transfer import Second

EXAMPLES = """\
keys, each with an example:
  duration=10s bytes=16G          how long, or how much; warmup=1s before it
  streams=4 threads=2             connections, and threads that serve them
  send=sendfile receive=splice    how bytes move: `list methods`
  source=FILE sink=FILE           from and to files; else from and to memory
  chunk=64K socket_buffer=1M      bytes a call, and of the sockets' buffers
  congestion=cubic rate=940Mb/s pin=apart ip=6
  hosts.HOST.address=10.0.0.2     where data goes, if not where SSH does
  pairs='{sender: HOST, receiver: here}'       the other way
  repeat.min=5                    runs of it, for an interval
  meters='[rusage, procstat, perf]'            what is counted: `list meters`
"""
VALUE: dict[str, Any] = {}
NO_VALUE: dict[str, Any] = {"action": "store_const", "const": ""}
OPTIONAL: dict[str, Any] = {"nargs": "?", "const": ""}
PINS = "pin={{sender: {0}, receiver: {1}}}"
FLAGS = {
    "-H": (VALUE, "{0}"),
    "-c --client": (OPTIONAL, "{0}"),
    "-t --time": (VALUE, "duration={0}s"),
    "-n --bytes": (VALUE, "bytes={0}"),
    "-l --length": (VALUE, "chunk={0}"),
    "-P --parallel": (VALUE, "streams={0}"),
    "-R --reverse": (NO_VALUE, "pairs={{sender: HOST, receiver: here}}"),
    "-b --bitrate --bandwidth": (VALUE, "rate={0}b/s"),
    "-w --window": (VALUE, "socket_buffer={0}"),
    "-C --congestion": (OPTIONAL, "congestion={0}"),
    "-Z --zerocopy": (NO_VALUE, "send=sendfile"),
    "-N --no-delay": (NO_VALUE, "nodelay=true"),
    "-F --file": (VALUE, "send=sendfile; source={0}"),
    "-O --omit": (VALUE, "warmup={0}s"),
    "-4 --version4": (NO_VALUE, "ip=4"),
    "-6 --version6": (NO_VALUE, "ip=6"),
    "-A --affinity": (VALUE, PINS),
    "-T --title": (VALUE, "about={0}"),
    "-J": (NO_VALUE, "--json"),
    "-V --verbose": (NO_VALUE, "--full"),
    "-I": (VALUE, "repeat.confidence={0}%"),
    "-i --interval": (VALUE, "nothing is needed: a line a second; sample=200ms is what is kept"),
    "-D --daemon": (OPTIONAL, "nothing is needed: receivers are started by SSH"),
    "-M --set-mss": (VALUE, "nothing: settings.mtu sets the interface's MTU"),
    "-u --udp": (NO_VALUE, "nothing: netbench moves TCP alone"),
    "--bidir": (
        NO_VALUE,
        "nothing: a run moves data one way; a campaign with `pairs: all` measures both",
    ),
    "-s --server": (NO_VALUE, "nothing: netbench starts its receiver itself, by SSH"),
}
"""Of iperf3's and netperf's flags what argparse has to know, and the words that do it, or that
nothing does.
"""
LOCAL = ("", "localhost", "127.0.0.1", "::1")
HERE = "nothing is needed: without a host both ends are here"
CPUS = "nothing is needed: the CPUs of both hosts are in every answer"
NETPERF = {
    "-l": "duration={0}s",
    "-c": CPUS,
    "-C": CPUS,
    "-T": PINS,
    "-i": "repeat.min={1}; repeat.max={0}",
    "-D": FLAGS["-i --interval"][1],
}
"""Those that netperf means otherwise."""
METHODS = {
    "TCP_STREAM": "nothing is needed: it is what transfer does",
    "TCP_SENDFILE": "send=sendfile",
    "TCP_MAERTS": FLAGS["-R --reverse"][1],
}
NO_METHOD = "nothing: netbench moves data by TCP; no requests, no UDP"
ZERO = {
    "-b": "nothing is needed: without a rate a sender sends what it can",
    "-t": "nothing: a run has an end; at Ctrl-C it prints what it moved",
}
AFTER = {"-m": "chunk", "-M": "receive_chunk", "-s": "send_buffer", "-S": "receive_buffer"}
"""What netperf is told after `--`, by the key that does it."""


def run(options: argparse.Namespace) -> int:
    given = vars(options)
    foreign = [(f, given[f]) for f in (names.split()[0] for names in FLAGS) if given[f] is not None]
    if foreign:
        own = ["--json"] * options.json + ["--full"] * options.full
        own += ["--results", str(options.results)] if options.results else []
        raise RequestError(_translated(foreign, options.words, own))
    words = [word for word in options.words if word not in LOCAL]
    keys = [word.partition("=")[0] for word in words if "=" in word]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise RequestError(
            f"transfer: {twice[0]} is given twice; a campaign compares levels: `sweep:`"
        )
    told: list[Second] = []

    def tell_second(second: Second) -> None:
        told.append(second)
        run = f"  run {second.run}" if second.run > told[0].run else ""
        tell(f"{_line(second.begin, [second])}{run}")

    try:
        result = api.transfer(*words, results=options.results, seconds=tell_second)
    except KeyboardInterrupt:
        if told:
            say(f"{_line(told[0].begin, told)}  in all, interrupted")
        raise
    if options.json or options.full:
        say(render(result.report, "json" if options.json else "text"))
    else:
        kept = "report --full" if options.results else "again with --full, or keep it: --results"
        say(render(result.report, "first", more=kept))
    if options.results:
        tell(str(result.path))
    return 0


def _line(begin: float, seconds: Sequence[Second]) -> str:
    """A line for some seconds: `  1.00-  2.00 s     2.65 GB   21.20 Gb/s sent  retransmits 0`."""
    end, moved = seconds[-1].end, sum(second.bytes for second in seconds)
    rate = moved * 8e-9 / (end - begin)
    line = f"{begin:6.2f}-{end:6.2f} s {moved / 1e9:8.2f} GB {rate:7.2f} Gb/s sent"
    known = [second.retransmits for second in seconds if second.retransmits is not None]
    return f"{line}  retransmits {sum(known)}" if known else line


def _translated(flags: Sequence[tuple[str, str]], words: Sequence[str], own: Sequence[str]) -> str:
    """For each flag of iperf3 or netperf the words that do it, or that nothing does; then the
    command in netbench's words.
    """
    given = dict(flags)
    host = next((value for flag, value in flags if flag in ("-c", "-H") and value), "")
    host = "" if host in LOCAL else host
    keys, rows = [host] if host else [], []
    known = {names.split()[0]: template for names, (_, template) in FLAGS.items()}
    if _is_netperf(given):
        known |= NETPERF | {"-t": METHODS.get(given.get("-t", ""), NO_METHOD)}
    for flag, value in flags:
        template = ZERO.get(flag, known[flag]) if value == "0" else known[flag]
        if (template == "{0}" and value in LOCAL) or ("HOST" in template and not host):
            template = HERE
        # iperf3's rate is of each stream, and may have a burst; its affinity is of the client
        whole = _times(value, given.get("-P", "1")) if flag == "-b" else value
        if flag == "-A" and "," not in value:
            template = "pin={{sender: {0}}}"
        found = [] if template.startswith("nothing") else template.split("; ")
        mine = [part.format(*(whole.split(",") * 2)) for part in found]
        mine = [key.replace("HOST", host.rpartition("@")[2]) for key in mine]
        keys += mine
        rows.append((f"  {flag} {value}", " ".join(map(shell_word, mine)) or template))
    keys += [word for word in words if "=" in word]
    for flag, value in pairwise(word for word in words if "=" not in word):
        if flag in AFTER:
            keys.append(f"{AFTER[flag]}={value.split(',')[0]}")
            rows.append((f"  {flag} {value}", keys[-1]))
    command = " ".join(map(shell_word, dict.fromkeys((*keys, *own))))
    lacks = any(told.startswith("nothing:") for _, told in rows)
    return (
        "transfer takes keys in place of the flags of iperf3 and netperf:\n"
        f"{table(rows)}\n{'without what there is not' if lacks else 'that is'}:\n"
        f"  {PROGRAM} transfer {command}".rstrip()
    )


def _is_netperf(given: Mapping[str, str]) -> bool:
    """Whether flags are netperf's: a host by -H, a test by -t, or -l with a time, which is as many
    digits as no chunk has.
    """
    number = given.get("-t", "0").replace(".", "").isdigit()
    time = "-c" not in given and given.get("-l", "").isdigit() and len(given["-l"]) < len("1000")
    return "-H" in given or not number or time


def _times(rate: str, streams: str) -> str:
    """A rate of iperf3's for so many streams, without its burst; as it is where it is no number."""
    rate, _, _ = rate.partition("/")
    number = rate.rstrip("KMGTkmgt")
    try:
        return f"{float(number) * int(streams):g}{rate[len(number) :]}"
    except ValueError:
        return rate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} [HOST] [KEY=VALUE]... [OPTION]..."
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    add_json(parser)
    parser.add_argument(
        "words",
        nargs="*",
        metavar="HOST, KEY=VALUE",
        help="HOST is an SSH destination, which receives (left out: this machine); keys are those"
        " of `transfer:` or of a campaign",
    )
    parser.add_argument("--full", action="store_true", help="print the whole report")
    parser.add_argument("--results", type=Path, metavar="DIR", help="keep the result below DIR")
    for names, (kind, _) in FLAGS.items():
        first, *more = names.split()
        parser.add_argument(first, *more, dest=first, help=argparse.SUPPRESS, **kind)
