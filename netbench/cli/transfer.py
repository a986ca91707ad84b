"""`transfer`: one cell without a campaign file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from netbench import api
from netbench.cli.foreign import LOCAL, check_keys
from netbench.cli.output import say, tell
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
  congestion=cubic rate=940Mb/s pin=apart ip=6 port=5001 nodelay=true
  request=1 response=1            requests of so many bytes, and their latency
  mode=crr connections=16         with a connection each (cc: empty), 16 at once
  depth=4 rate=1000/s             4 under way on each; so many offered a second
  hosts.HOST.address=10.0.0.2     where data goes, if not where SSH does
  pairs='{sender: HOST, receiver: here}'       the other way
  repeat.min=5                    runs of it, for an interval
  meters='[rusage, procstat, perf]'            what is counted: `list meters`
all keys: docs/reference/campaign-file.md, or `schema`
"""


def run(options: argparse.Namespace) -> int:
    words = [word for word in options.words if not word or word not in LOCAL]
    check_keys(words)
    seconds: list[Second] = []

    def tell_second(second: Second) -> None:
        seconds.append(second)
        run = f"  run {second.run}" if second.run > seconds[0].run else ""
        tell(f"{_line(second.begin, [second])}{run}")

    try:
        result = api.transfer(*words, results=options.results, seconds=tell_second)
    except KeyboardInterrupt:
        if seconds:
            say(f"{_line(seconds[0].begin, seconds)}  in all, interrupted")
        raise
    if options.json or options.full:
        say(render(result.report, "json" if options.json else "text"))
    else:
        how = "report --full" if options.results else "again with --full, or keep it: --results"
        say(render(result.report, "first", more=how))
    if options.results:
        tell(str(result.path))
    return 0


def _line(begin: float, seconds: Sequence[Second]) -> str:
    """A line for some seconds: `  1.00-  2.00 s     2.65 GB   21.20 Gb/s sent  retransmits 0`, or
    `  1.00-  2.00 s     93825 requests   93825 1/s  retransmits 0`.
    """
    end, span = seconds[-1].end, seconds[-1].end - begin
    moved = sum(second.bytes or 0 for second in seconds)
    answered = sum(second.requests or 0 for second in seconds)
    rate = f"{moved / 1e9:8.2f} GB {moved * 8e-9 / span:7.2f} Gb/s sent"
    if seconds[-1].requests is not None:
        rate = f"{answered:9} requests {answered / span:9.0f} 1/s"
    known = [second.retransmits for second in seconds if second.retransmits is not None]
    again = f"  retransmits {sum(known)}" if known else ""
    return f"{begin:6.2f}-{end:6.2f} s {rate}{again}"


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
