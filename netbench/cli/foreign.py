"""What flags of iperf3 and netperf are in keys, and where netbench has other programs' options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from netbench.base.errors import RequestError
from netbench.base.hints import hints
from netbench.base.names import PROGRAM, shell_word
from netbench.cli.output import fold, table

CAMPAIGNS = ("run", "plan", "check", "ab")
LOCAL = ("", "localhost", "127.0.0.1", "::1")
HERE = "nothing is needed: without a host both ends are here"
NO_KEY = "nothing that is known: `transfer --help` lists keys"
NETPERF = re.compile(
    r"(^| )(--|-H\S*|-t ?[a-zA-Z]\w*|-l ?-\w+|-[IiTr] ?\d*,\d*|-[cC](?= -|$))( |$)"
    r"|^(?!.*-c ?\w).*-l ?\d{1,3}( |$)"  # a chunk has more digits
)
LINES = {"requests:": "request=|mode=", "sizes:": "request={a}", "reversed:": "pairs="}
LINES |= {"files:": "send=sendfile", "streams:": "streams=", "rounds:": "repeat.max={a}"}
"""What a line is of where a flag does that."""
_Word = tuple[str, str, str]
"""A flag, its value, and the table that may have it; of no flag, only the second is told."""
KEY = re.compile(r"(?!pairs=|hosts\.(?!here\.))[\w.]+=")


def has_flags(words: Sequence[str]) -> bool:
    """Whether words of `transfer` have another program's flags, and ask for no help."""
    flags = {word.partition("=")[0] for word in words if word.startswith("-")}
    return bool(flags - {"--json", "--full", "--results", "--"}) and not flags & {"-h", "--help"}


def answer(typed: Sequence[str]) -> str:
    """Of each word of `transfer` that is no key: the keys that do it, or that nothing does."""
    flags = list(_words(typed))
    keys = [value for flag, value, _ in flags if not flag and "=" in value]
    words = [word for word in flags if word[0] or "=" not in word[1]]
    bare = [word for word in words if not word[0] and not word[1].isdigit()]
    hosts = [word for word in words if "{other}" in _does(word)]
    hosts = hosts or bare[:1]
    host = re.split("[,%]", hosts[0][1])[0] if hosts else ""
    done = " ".join(_does(word) for word in words)
    of = [line for line, sign in LINES.items() if re.search(sign, done)]
    rows = []
    for word in words:
        does = "{other}" if word in hosts and word in bare else _does(word, of)
        if word in hosts and word != hosts[0]:
            does = "nothing: a run has one other end (a campaign has more: `hosts:`, `pairs:`)"
        elif "{host}" in does and host in LOCAL:
            does = HERE
        own_keys = _filled(does, word, host, "reversed:" in of)
        if ", got " in (why := _refused(own_keys)):  # else for want of other keys
            own_keys = [f"nothing: {why}"]
        keys += own_keys
        shown = [shell_word(part) if re.match(r"[\w.]+=", part) else part for part in own_keys]
        line = " ".join(shown).replace(" nothing ", "; nothing ")
        rows.append((f"  {' '.join(word[:2]).strip()}", line))
    lines = ["transfer takes keys in place of the flags of iperf3 and netperf:", table(rows)]
    if any(re.match(r"[\w.]+=", key) for key in keys):
        lines.append(f"keys go behind the host: `{PROGRAM} transfer [HOST] KEY=VALUE...`")
    if why := _refused(keys):
        lines.append(fold(f"together they are refused: {why}"))
    return "\n".join(lines)


def _words(typed: Sequence[str]) -> Iterator[_Word]:
    """Flags, each with its value and its table, and words of none, with the words behind them."""
    rest, short = list(typed), "netperf" if NETPERF.search(" ".join(typed)) else "iperf3"
    while rest:
        word = rest.pop(0)
        if word == "--":
            short = "netperf after --"
        elif not word.startswith("-"):
            yield "", word, "iperf3"
        else:
            is_long = word.startswith("--")
            where = "iperf3" if is_long else short
            flag, _, value = word.partition("=") if is_long else (word[:2], "", word[2:])
            known, has_value = hints(where), f"{flag} N" in hints(where)
            if value and not is_long and not has_value:  # flags behind one dash
                rest.insert(0, f"-{value}")
                value = ""
            elif not value and rest and (has_value or flag not in known):
                is_value = re.match(
                    r"-[\d.]+[KMGkmg]?$|[^-]" if has_value else r"\d[\d,-]*$|[^-=]+$", rest[0]
                )
                value = rest.pop(0) if is_value else ""
            yield flag, value, where


def _does(word: _Word, of: Sequence[str] = ()) -> str:
    """What a word does in a line of that: a template, or a text."""
    flag, value, where = word
    ends = (f":{value.upper()}", ":-" if value.startswith("-") else "", "")
    names = (f"{line}{flag}{end}" for end in ends for line in (*of, "") if flag)
    known = next((hints(where)[name] for name in names if name in hints(where)), "")
    return known or option("transfer", flag) or NO_KEY


def _filled(does: str, word: _Word, host: str, is_reversed: bool) -> list[str]:
    """A template with what it has of the value: keys, or a text."""
    flag, value, where = word
    unit = "" if where == "iperf3" else "B"  # k is netbench's K in iperf3, kB in netperf
    size = re.sub(
        r"(?<=\d)([kmgtKMGT])B?(?=,|$)",
        lambda found: found[1].upper() + unit * found[1].islower(),
        value.lstrip("-"),
    )
    a, comma, b = size.partition(",")
    both = b if comma or where == "iperf3" else a
    named = {"N": value, "size": size, "a": a, "b": b, "both": both, "digit": flag[-1:]}
    named |= {"sender": both, "receiver": a} if is_reversed else {"sender": a, "receiver": both}
    named["seconds"] = value + "s" * value[-1:].isdigit()
    named["family"] = b[-1:] if b[-1:] in "46" else ""
    named["half"] = str(Decimal(b) / 2) if re.fullmatch(r"\d+(\.\d+)?", b) else ""
    named["more"] = str(int(both) + 1) if both.isdigit() else ""
    named["host"] = host.rpartition("@")[2]
    named["other"] = HERE if host in LOCAL else f"the host: {host}"
    named["other"] += " (no key binds to a device)" * ("%" in value)
    keys = [re.sub(r"\w+: , |, \w+: (?=\})", "", p.format(**named)) for p in does.split("; ")]
    empty = re.compile(r"[\w.]+=(%|b/s|\{\w+: \})?")
    return [p for p in keys if not empty.fullmatch(p)] or ["nothing: it has no value here"]


def check_keys(words: Sequence[str]) -> None:
    """Errors: RequestError where a key is given twice, or two that bound a run."""
    from netbench.campaign.edit import BOUNDS

    keys = [word.partition("=")[0] for word in words if "=" in word]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise RequestError(
            f"transfer: {twice[0]} is given twice; a campaign compares levels: `sweep:`"
        )
    if len(given := [key for key in BOUNDS if key in keys]) > 1:
        both = " or by ".join(given[:2])
        raise RequestError(f"transfer: a run is bounded by {both}, got both; give one")


def _refused(words: Sequence[str]) -> str:
    """Why a campaign of the keys among words is refused, but for those of hosts; "": it is not."""
    from netbench import campaign

    keys = [word for word in words if KEY.match(word)]
    try:
        check_keys(keys)
        campaign.transfer_cell(keys)
    except RequestError as error:
        return str(error).splitlines()[0].removeprefix("transfer: ")
    return ""


def option(verb: str, word: str) -> str:
    """Where a verb has what another program's option does, or the key that does; "": nowhere."""
    of_file, known, name = verb in CAMPAIGNS, hints("options"), word[2:].replace("-", "_")
    known_answer = known.get(f"{'run' if of_file else verb}:{word}") or known.get(word, "")
    if known_answer or not word.startswith("--") or not (of_file or verb == "transfer"):
        return known_answer
    from netbench import campaign

    schema: Any = campaign.json_schema()
    own = f"transfer.{name}" if name in schema["$defs"]["Transfer"]["properties"] else ""
    if key := hints("keys").get(name, own):
        named = f"{key} (--set)" if of_file else key.removeprefix("transfer.")
        return f"the key{'s' * (' ' in key)} {named}"
    return ""
