"""`transfer`: one cell without a campaign file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
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
FLAGS = {
    "-H": (VALUE, "{}"),
    "-c": (OPTIONAL, "{}"),
    "-t": (VALUE, "duration={}s"),
    "-n": (VALUE, "bytes={}"),
    "-l": (VALUE, "chunk={}"),
    "-P": (VALUE, "streams={}"),
    "-R": (NO_VALUE, "pairs={{sender: HOST, receiver: here}}"),
    "-b": (VALUE, "rate={}b/s"),
    "-w": (VALUE, "socket_buffer={}"),
    "-C": (OPTIONAL, "congestion={}"),
    "-Z": (NO_VALUE, "send=sendfile"),
    "-4": (NO_VALUE, "ip=4"),
    "-6": (NO_VALUE, "ip=6"),
    "-A": (VALUE, "pin={{sender: {0}, receiver: {1}}}"),
    "-J": (NO_VALUE, "--json"),
    "-V": (NO_VALUE, "--full"),
}
"""Of iperf3's and netperf's flags what argparse has to know, and the word that does it."""
LOCAL = ("localhost", "127.0.0.1", "::1")
NETPERF = {"-l": "duration={}s", "-c": "", "-C": "", "-t": ""}
"""Those that netperf, which is told by -H, means otherwise."""
METHODS = {"TCP_SENDFILE": "send=sendfile", "TCP_MAERTS": FLAGS["-R"][1], "TCP_STREAM": ""}
AFTER = {"-m": "chunk", "-M": "receive_chunk", "-s": "send_buffer", "-S": "receive_buffer"}
"""What netperf is told after `--`, by the key that does it."""
HERE = "nothing is needed: without a host both ends are here"
NOTHING = {
    "-u": "nothing: netbench moves TCP alone",
    "--bidir": "nothing: a run moves data one way; a campaign with `pairs: all` measures both",
    "-s": "nothing: netbench starts its receiver itself, by SSH",
    "-c": "nothing is needed: the CPUs of both hosts are in every answer",
    "-t": "nothing is needed for TCP_STREAM; netbench has no requests, and no UDP",
    "-b": "nothing is needed: without a rate a sender sends what it can",
}
NOTHING |= {"-C": NOTHING["-c"]}


def run(options: argparse.Namespace) -> int:
    given = vars(options)
    foreign = [(f, given[f]) for f in dict.fromkeys((*FLAGS, *NOTHING)) if given[f] is not None]
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
        tell(_line(second.begin, [second]))

    try:
        result = api.transfer(*words, results=options.results, seconds=tell_second)
    except KeyboardInterrupt:
        if told:
            say(f"{_line(told[0].begin, told)}  in all, interrupted")
        raise
    say(render(result.report, "json" if options.json else "text" if options.full else "first"))
    if options.results:
        tell(str(result.path))
    return 0


def _line(begin: float, seconds: Sequence[Second]) -> str:
    """A line for some seconds: `  1.00-  2.00 s     2.65 GB   21.20 Gb/s  retransmits 0`."""
    end, moved = seconds[-1].end, sum(second.bytes for second in seconds)
    line = (
        f"{begin:6.2f}-{end:6.2f} s {moved / 1e9:8.2f} GB {moved * 8e-9 / (end - begin):7.2f} Gb/s"
    )
    known = [second.retransmits for second in seconds if second.retransmits is not None]
    return f"{line}  retransmits {sum(known)}" if known else line


def _translated(flags: Sequence[tuple[str, str]], words: Sequence[str], own: Sequence[str]) -> str:
    """For each flag of iperf3 or netperf the word that does it, or that nothing does; then the
    command in netbench's words.
    """
    given = dict(flags)
    is_netperf = "-H" in given or not given.get("-t", "0").replace(".", "").isdigit()
    host = next((value for flag, value in flags if flag in ("-c", "-H") and value), "")
    host = "" if host in LOCAL else host
    rows, keys = [], [word for word in words if "=" in word]
    after = [word for word in words if "=" not in word]
    for flag, value in flags:
        template = FLAGS.get(flag, (VALUE, ""))[1]
        if is_netperf:
            template = METHODS.get(value, NETPERF.get(flag, template))
        # iperf3's rate is of each stream
        whole = _times(value, given.get("-P", "1")) if flag == "-b" else value
        key = template.format(*(whole.split(",") * 2))
        if key in LOCAL or ("HOST" in key and not host) or (flag == "-b" and whole == "0"):
            key = ""
        key = key.replace("HOST", host.rpartition("@")[2])
        told = shell_word(key) if key else HERE if value in LOCAL else NOTHING.get(flag, HERE)
        rows.append((f"  {flag} {value}", told))
        keys += [key] if key else []
    for flag, value in pairwise(after):
        if flag in AFTER:
            keys.append(f"{AFTER[flag]}={value.split(',')[0]}")
            rows.append((f"  {flag} {value}", keys[-1]))
    keys += own
    ordered = sorted(keys, key=lambda key: key != host)
    return (
        "transfer takes keys in place of the flags of iperf3 and netperf:\n"
        f"{table(rows)}\nthat is:\n"
        f"  {PROGRAM} transfer {' '.join(map(shell_word, ordered))}"
    )


def _times(rate: str, streams: str) -> str:
    """A rate of iperf3's for so many streams; as it is where it is no number and a unit."""
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
    for flag in dict.fromkeys((*FLAGS, *NOTHING)):
        parser.add_argument(
            flag, dest=flag, help=argparse.SUPPRESS, **FLAGS.get(flag, (NO_VALUE, ""))[0]
        )
