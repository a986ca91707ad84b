"""`transfer`: one cell without a campaign file."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netbench import api
from netbench.base.errors import CampaignError, RequestError
from netbench.base.hints import hints, key_for, synonyms
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
KINDS: dict[str, dict[str, Any]] = {
    "flags with a value": {},
    "flags that may have one": {"nargs": "?", "const": ""},
    "flags": {"action": "store_const", "const": ""},
}
"""Tables of iperf3's and netperf's flags, with what argparse has to know of them."""
SIDES = {"CLIENT": "sender", "LOCAL": "send", "REMOTE": "receive", "SERVER": "receiver"}
LOCAL = ("", "localhost", "127.0.0.1", "::1")
HERE = "nothing is needed: without a host both ends are here"
NO_METHOD = "nothing: no such test of netperf's is there, over TCP (a title: about=...)"
NO_OPTION = "nothing: netbench has no such option"
NO_KEY = "nothing that is known: `transfer --help` lists keys"


def run(options: argparse.Namespace) -> int:
    given = vars(options)
    flags = [flag for table in KINDS for flag in synonyms(table)]
    foreign = [(flag, given[flag]) for flag in flags if given[flag] is not None]
    if foreign:
        own = ["--json"] * options.json + ["--full"] * options.full
        own += ["--results", str(options.results)] if options.results else []
        raise RequestError(_translated(foreign, options.words, own, options.more))
    words = [word for word in options.words if word not in LOCAL]
    if theirs := [hints("options")[word] for word in words if word in hints("options")]:
        raise RequestError(f"transfer: {theirs[0]}")
    keys = [word.partition("=")[0] for word in words if "=" in word]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise RequestError(
            f"transfer: {twice[0]} is given twice; a campaign compares levels: `sweep:`"
        )
    _check_bound(words)
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


def _translated(
    flags: Sequence[tuple[str, str]],
    words: Sequence[str],
    own: Sequence[str],
    more: Sequence[tuple[str, str]],
) -> str:
    """For each flag of iperf3 or netperf the words that do it, or that nothing does; then the
    command in netbench's words. more: flags of neither.
    """
    given = dict(flags)
    at = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    host = _host(flags, words[:at])
    keys, spare, rows = [host] if host else [], list[str](), []
    known = {flag: does for kind in KINDS for flag, does in hints(kind).items()}
    if _is_netperf(given):
        known |= hints("flags of netperf")
        known["-t"] = _test(given.get("-t", "TCP_STREAM").upper())
    elif given.get("-r", "").isdigit() or not given.get("-P", "1").isdigit():
        known |= hints("flags of hyperfine")
    turned = "-R" in given or given.get("-t") == "TCP_MAERTS"
    roles = dict(zip(SIDES, [*SIDES.values()][:: -1 if turned else 1], strict=True))
    roles["HOST"] = host.rpartition("@")[2]
    after, others = hints("netperf after --"), hints("options")

    def add(flag: str, value: str, template: str) -> None:
        if (template == "{0}" and value in LOCAL) or ("HOST" in template and not host):
            template = HERE
        found = [] if template.startswith("nothing") else template.split("; ")
        for role, side in roles.items():
            found = [part.replace(role, side) for part in found]
        if not template.startswith(("duration", "warmup")) and re.fullmatch(r"[\d.]+[mg]", value):
            value = value.upper()  # m and g are theirs for M and G
        # iperf3's rate is of each stream, and may have a burst
        whole = _times(value, given.get("-P", "1")) if "rate=" in template else value.lstrip("-")
        half = _times(value.rpartition(",")[2], "0.5")
        mine = [_tidy(part.format(*whole.split(",") * 2, half=half)) for part in found]
        texts = [part.lstrip("?") for part in mine]
        why = _refused([*keys, *texts]) if texts and texts[0] != host else ""
        if ", got " in why or "means nothing" in why:
            mine, template = [], f"nothing: {why.partition(': ')[2]}"
        keys.extend(part for part in mine if part[0] != "?")
        spare.extend(part[1:] for part in mine if part[0] == "?")
        rows.append((f"  {flag} {value}", " ".join(map(shell_word, mine and texts)) or template))

    for flag, value in flags:
        add(flag, value, hints("flags of such a value").get(f"{flag}:{_shape(value)}", known[flag]))
    keys += [word for word in words[:at] if "=" in word]
    of_requests = "requests:" * any(key.startswith(("request", "mode")) for key in keys)
    for flag, value in re.findall(r"(?:^|(?<= ))(-\S) ?((?!-)\S*)", " ".join(words[at:])):
        add(flag, value, after.get(f"{of_requests}{flag}") or after.get(flag, NO_OPTION))
    rows += [(f"  {word}", others[word]) for word in words[:at] if word in others]
    for word, next_word in more:
        add(*_of_neither(word, next_word))
    by_key = {word.partition("=")[0]: word for word in (*keys, *own)}
    for word in spare:
        by_key.setdefault(word.partition("=")[0], word)
    command = " ".join(map(shell_word, by_key.values()))
    told = f"transfer takes keys in place of the flags of iperf3 and netperf:\n{table(rows)}"
    if known["-t"].startswith("nothing:"):
        return told
    lacks = any(re.match("nothing(?! is needed)", does) for _, does in rows)
    refused = _refused([*by_key.values()])
    return (
        f"{told}\n{'without what there is not' if lacks else 'that is'}:\n"
        f"  {PROGRAM} transfer {command}".rstrip()
        + (f"\nbut for this: {refused}" if refused else "")
    )


def _of_neither(word: str, next_word: str) -> tuple[str, str, str]:
    """A flag that is not iperf3's or netperf's, its value, and what does it."""
    others, (flag, _, value) = hints("options"), word.partition("=")
    key = key_for(flag, value or next_word)
    does = others.get(f"transfer:{flag}") or others.get(flag, NO_KEY)
    if " " in key:
        does = f"nothing: {key}"
    elif key:
        return flag, value, key
    return flag, value, does if does.startswith("nothing") else f"nothing: {does}"


def _host(flags: Sequence[tuple[str, str]], words: Sequence[str]) -> str:
    """The other end, as -c or -H names it, or a word; "" where it is this machine."""
    named = [value.partition(",")[0] for flag, value in flags if flag in ("-c", "-H") and value]
    named += (word for word in words if not re.search("=|^[0-9]+$", word))
    named = [name for name in named if name not in hints("options")]
    return named[0] if named and named[0] not in LOCAL else ""


def _test(name: str) -> str:
    """What a test of netperf is here."""
    tests = hints("tests of netperf")
    near = get_close_matches(name, tests, 1, 0.8)
    return tests.get(
        name, f"nothing: there is no such test; is it {near[0]}?" if near else NO_METHOD
    )


def _shape(value: str) -> str:
    """What kind of value a flag has, as hints.txt has it behind a colon."""
    if value in ("", "0"):
        return value
    if "/" in value:
        return "/"
    if value[0].isalpha() and "," not in value:
        return "w"
    numbers = re.fullmatch(r"[\d.]*,[\d.]*|[^,\s]+,[46]", value)
    return "-" if value[0] == "-" else str(1 + bool(numbers))


def _tidy(key: str) -> str:
    """A key with what of its value was given: none of a mapping's pairs without one, one unit."""
    key = re.sub(r"\w+: , |, \w+: (?=\})", "", key)
    return re.sub(r"(?<=\d[smh])s$", "", key)


def _refused(words: Sequence[str]) -> str:
    """Why a campaign of these keys is refused, but for those of hosts; "" where it is not."""
    from netbench import campaign

    try:
        keys = [word for word in words if "=" in word and not word.startswith("--")]
        _check_bound(keys)
        campaign.transfer_cell(
            [
                word
                for word in keys
                if word.startswith("hosts.here.") or not word.startswith(("pairs=", "hosts."))
            ]
        )
    except (CampaignError, RequestError) as error:
        return str(error)
    return ""


def _check_bound(words: Sequence[str]) -> None:
    if {"duration", "bytes"} <= {word.partition("=")[0] for word in words}:
        raise RequestError("transfer: a run is bounded by duration or by bytes, got both; give one")


def _is_netperf(given: Mapping[str, str]) -> bool:
    """Whether flags are netperf's: a host by -H, a test by -t, or -l with a time, which no chunk
    has as few digits as.
    """
    time = "-c" not in given and re.fullmatch(r"\d{1,3}", given.get("-l", ""))
    own = "-H" in given or "," in given.get("-r", "")
    return own or not re.fullmatch(r"[\d.]+[smh]?", given.get("-t", "0")) or bool(time)


def _times(rate: str, streams: str) -> str:
    """A rate of iperf3's for so many streams, without its burst; as it is where it is no number."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTkmgt]?)(?:/.*)?", rate)
    return f"{float(found[1]) * float(streams):g}{found[2]}" if found else rate


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
    for kind, how in KINDS.items():
        for flag, names in synonyms(kind).items():
            parser.add_argument(*names, dest=flag, help=argparse.SUPPRESS, **how)
    parser.set_defaults(more=())
    parser._has_negative_number_optionals.clear()  # for -4 and -6: -l may have -1000 or -1M
    parser._negative_number_matcher = re.compile(r"-\d+[KMGkmg]?$")
