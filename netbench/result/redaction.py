"""A copy of a result without what says whose it is: names of hosts, groups, links, domains and
users, addresses, and the kernel's command line. Numbers, and what explains them, stay as they were
measured.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from netbench.base.errors import PlaceError, StoreError
from netbench.base.hostlist import NOTATION, expand, fold
from netbench.base.json_lines import JsonLines, read_whole
from netbench.base.names import METRICS, REQUEST_METRICS
from netbench.base.opening import files_inside
from netbench.result.reading import read_keys

REDACTED = "redacted"
DOMAIN = "example"
_NAMED = {"groups": "group", "links": "link"}
"""Top-level keys of a campaign whose keys are a site's names, and what stands for each."""
SIDES = frozenset("sender receiver send receive snd rcv here local client server".split())
SIDES |= frozenset("s r tx rx src dst".split())
"""Names of hosts that say no more than what a host does."""
_FREE_TEXT = ("log.txt", "samples/*.txt", "report", "id", "parts")
"""What a redacted copy leaves out: nobody can say what names such text may hold."""
_LETTERS = re.compile(r"[^\W\d_].*[^\W\d_]")  # of a domain; `1` of dtn.1 is none
_FLOW = r"\s\[\]{},\"'"  # what ends a word of YAML or JSON
# of an SSH alias: what it stands for is in no campaign
_LOGIN = re.compile(
    rf"((?<=\()[^()]{{1,128}}|[^()@/{_FLOW}]{{1,64}})@"
    rf"(\[\Z|(?:\[[^\s\]]{{1,64}}\]|[^()@:/{_FLOW}]{{1,253}})(?=:\d)|(?:host\d+|example\d*)(?!\w)"
    rf"|\d[\d.]+(?!\w)|[^()@:/`.{_FLOW}]{{1,63}}\.[^()@:/`{_FLOW}]{{1,190}}(?!\w))"
)  # of an address that has colons the text before it is looked at alone
# what is known of a reason; behind it stands what SSH, tools and commands have printed
_KNOWN = re.compile("(verify: |boot: |lost: |).+", re.S)
_TIME_AND_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]+", re.ASCII)  # what a result is called, in
_CAMPAIGN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TOLD = re.compile(r"root|user\d*|host\d*|[\d.]+|\[[\da-fA-F:.]*\]?|example\d*")
"""What says nothing of a site, or is an address."""
_MAPPED = re.compile(rf"(?<=/dev/mapper/)[^{_FLOW}]+")  # LVM's groups are called like their host
_HOME = re.compile(rf"(?:(?<=/home/)|(?<=/Users/))[^/:{_FLOW}]+")
_BEHIND = r"(?<=\\[nrt])"  # an escape of YAML, JSON or a shell, of which the letter is no word's
# of Ethernet, EUI-64 and InfiniBand
_MAC = re.compile(
    rf"(?:(?<!\w)|{_BEHIND})(?:[0-9A-Fa-f]{{2}}[:-]){{5,19}}[0-9A-Fa-f]{{2}}(?![0-9A-Fa-f])"
    rf"|(?:(?<![\w.])|{_BEHIND})(?:[0-9A-Fa-f]{{4}}\.){{2}}[0-9A-Fa-f]{{4}}(?![\w.])"
)
_OF_NAME = re.compile(
    r"(?:(?<=\b(?:en|wl|ww)x)|(?<=\bbr-))[0-9a-f]{12}(?!\w)"
)  # a MAC, systemd.net-naming-scheme(7)
_OF_CLOUD = re.compile(r"(?<=\bip-)\d{1,3}(?:-\d{1,3}){3}(?!\w)")
# a fifth number is that of a version, or behind a dot a port, as tcpdump(1) writes it
_FOUR = re.compile(r"(?<!\d)(?<!\d\.)\d{1,3}(?:\.\d{1,3}){3}(?!\d|\.\d{1,2}(?!\d))")
_ADDRESS = re.compile(
    rf"{_MAC.pattern}|{_OF_NAME.pattern}|{_OF_CLOUD.pattern}"
    rf"|(?:(?<![\w:.])|(?<=\w:)(?!:)|{_BEHIND})(?:[0-9A-Fa-f]{{0,4}}:){{2,7}}"
    rf"(?:{_FOUR.pattern}|[0-9A-Fa-f]{{1,4}}|(?<=::))(?!\w)|{_FOUR.pattern}"
)
"""An address whatever stands beside it: a port, a word, a colon. Of IPv6 only a word's end."""
_OPEN = "moved counters missing values not_held unread gauges factors held tools captures".split()
"""What has keys, too, that a campaign chose, or that are called by a host or a link."""
_OF_JOURNAL = ("left_changed", "ended")  # kinds of entries that a report tells
_PARTS = {part for name in (*METRICS, *REQUEST_METRICS) for part in name.split("_")}
_PARTS |= {"send", "receive", "socket", "buffer", "chunk"}
"""Between `_` these are words of netbench's own, also where a host has such a name."""
_NUMBERED = re.compile("facts .*(version|firmware|kernel)")  # their dots are no address


class Redaction:
    """What stands for each name and address, the same wherever it occurs."""

    def __init__(self, campaign: Mapping[str, Any]) -> None:
        """`campaign`: the keys of campaign.yaml."""
        self._names: dict[str, str] = {}  # as they are written, and in small letters
        named = list(_names(campaign))
        for lower in (False, True):
            for name, stand_in in named:
                self._names.setdefault(name.lower() if lower else name, stand_in)
        hosts = campaign.get("hosts")
        self._more = len(named) + (len(hosts) if isinstance(hosts, dict) else 0)
        self._addresses: dict[str, str] = {}
        self._lines: dict[str, int] = {}
        self.top = re.compile(f"(?m)^((?:{'|'.join(map(re.escape, campaign))}):)")
        longest = sorted(self._names, key=len, reverse=True)
        alone, among = (
            "|".join(re.escape(name) for name in longest if (name.lower() in _PARTS) == is_part)
            or "(?!)"
            for is_part in (True, False)
        )
        domains = "|".join(re.escape(n) for n in longest if self._names[n].startswith(DOMAIN))
        # hosts that no campaign names, by labels of RFC 1035: without bounds all of a text is tried
        below = rf"|(?:[\w-]{{1,63}}\.){{1,16}}(?:{domains})" if domains else ""
        self._named = re.compile(
            rf"(?:(?<![^\W_])|{_BEHIND})(?:(?:{among}{below})(?![^\W_])|(?<!_)(?:{alone})(?!\w))",
            re.I,
        )

    def text(self, text: str, addresses: bool = True) -> str:
        """A text with what stands for its names and, if so wanted, its addresses. No name has a
        colon: one within an address, such as `a` or `db1`, is none.
        """
        pieces, at = [], 0
        for match in _ADDRESS.finditer(text) if addresses else ():
            if ":" in match[0] and _stand_in(match[0], 1) != match[0]:
                pieces.append(self._plain(text[at : match.start()], addresses))
                pieces.append(self._address(match[0]))
                at = match.end()
        return "".join((*pieces, self._plain(text[at:], addresses)))

    def _plain(self, text: str, addresses: bool) -> str:
        """A text without addresses that have colons, as `text` gives it."""
        text = NOTATION.sub(self._notation, text)
        text = self._named.sub(lambda found: self._stand(found[0], "host"), text)
        text = _LOGIN.sub(
            lambda found: f"{self._stand(found[1], 'user')}@{self._stand(found[2], 'host')}", text
        )
        text = _MAPPED.sub(lambda found: self._stand(found[0], "mapped"), text)
        text = _HOME.sub(lambda found: self._stand(found[0], "user"), text)
        return _ADDRESS.sub(lambda found: self._address(found[0]), text) if addresses else text

    def value(self, value: Any, key: str = "") -> Any:
        """A value of a JSON file; `key` is what it is the value of."""
        if isinstance(value, str):
            return self.text(value, addresses=not _NUMBERED.match(key))
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if not isinstance(value, dict):
            return value
        is_open = key in ("hosts", *_NAMED, *_OPEN) or key.startswith("settings ")
        values = {
            self._told(k, self.text(k)) if is_open else k: self.value(
                v, f"{key} {k}" if key in ("facts", "settings") else k
            )
            for k, v in value.items()
        }
        if len(values) < len(value):
            names = f"names of {key or 'a record'}, {', '.join(value)},"
            raise StoreError(f"{names} would have the same stand-in; leave --redact out")
        if isinstance(why := values.get("reason"), str) and values.get("status") != "unsupported":
            values["reason"] = _KNOWN.sub(rf"\1{REDACTED}", why)
        if {"text", "unit"} <= values.keys():  # of a tool
            values["text"] = REDACTED
        if isinstance(missing := values.get("missing"), dict) and "all" in missing:
            values["missing"] = missing | {"all": REDACTED}
        if isinstance(line := value.get("command_line"), str):
            number = self._lines.setdefault(line, len(self._lines) + 1)
            values["command_line"] = f"{REDACTED} {number}"
        if "kind" in values and "machine" in values:  # that of the controller
            values["machine"] = REDACTED
        return values

    def _told(self, name: str, other: str) -> str:
        """What stands for a name; `other` where it is none."""
        return self._names.get(name) or self._names.get(name.lower(), other)

    def _notation(self, found: re.Match[str]) -> str:
        """A notation of what stands for its names; one of other things as it is."""
        try:
            names = expand(found[0], len(self._names))  # more are no names of ours
        except ValueError:
            return found[0]
        if not all(name.lower() in self._names for name in names):
            return found[0]
        return fold([self._told(name, name) for name in names])

    def _stand(self, name: str, kind: str) -> str:
        """What stands for a name, also for one that no campaign tells: no other has the same."""
        if (told := self._told(name, "")) or _TOLD.fullmatch(name):
            return told or name
        self._more += 1
        return self._names.setdefault(name.lower(), f"{kind}{self._more}")

    def _address(self, word: str) -> str:
        """An address out of those that are kept for documents (RFC 5737, 3849 and 7042)."""
        stand_in = self._addresses.get(word) or _stand_in(word, len(self._addresses) + 1)
        if stand_in != word:
            self._addresses[word] = stand_in
        elif ":" in word:  # of IPv6 only by its form, as `12:30:192.0.2.1` is
            return _FOUR.sub(lambda found: self._address(found[0]), word)
        return stand_in


def _stand_in(word: str, number: int) -> str:
    """What stands for an address; a word that is none, or the same everywhere, for itself."""
    if _MAC.fullmatch(word):
        return f"00:00:5e:00:53:{number % 256:02x}"
    if re.fullmatch("[0-9a-f]{12}", word):
        return f"00005e0053{number % 256:02x}"
    try:
        address = ipaddress.ip_address(word.replace("-", "."))
    except ValueError:
        return word
    if address.is_loopback or address.is_unspecified:
        return word
    if address.version == 6:
        return f"2001:db8::{number:x}"
    networks = ("192.0.2", "198.51.100", "203.0.113")
    return f"{networks[number // 254 % 3]}.{number % 254 + 1}"


def _names(campaign: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What identifies the hosts of a campaign, and what stands for it."""
    hosts = campaign.get("hosts")
    domains = dict[str, str]()
    numbered = list(enumerate(hosts.items() if isinstance(hosts, dict) else (), 1))
    own = {str(name): f"host{number}" for number, (name, _) in numbered}
    none = SIDES | {"", "default", *filter(_ADDRESS.fullmatch, own)}
    yield from ((name, own[name]) for name in own if name.lower() not in none)  # before ways there
    for number, (name, written) in numbered:
        keys = written if isinstance(written, dict) else {"ssh": written}
        user, _, target = str(keys.get("ssh") or "").rpartition("@")
        target = target.removeprefix("ssh://").partition("/")[0]
        if target.startswith("["):
            target = target[1:].partition("]")[0]
        host = target if target.count(":") > 1 else target.partition(":")[0]
        for word in {str(name), host, str(keys.get("address") or "")}:
            if word.lower() in none or _ADDRESS.fullmatch(word):
                continue  # an address, which is found by its form
            yield word, f"host{number}"
            label, *domain = word.split(".")
            if domain and not label.isdecimal() and label.lower() not in none:
                yield label, f"host{number}"
            for i in range(len(domain) - 1):  # the last label is anybody's
                if _LETTERS.search(below := ".".join(domain[i:])):
                    yield below, domains.setdefault(below, f"{DOMAIN}{len(domains) or ''}")
        for each in {user.rpartition("/")[2], str(keys.get("run_as") or "")} - {"", "root"}:
            yield each, f"user{number}"
    if (config := campaign.get("ssh_config")) not in (None, "none"):
        yield str(config), "ssh_config"
    paths = filter(os.path.isabs, _every_word(campaign.get("kernels")))
    yield from ((path, os.path.basename(path.rstrip("/")) or "root") for path in paths)
    used = set(_every_word({k: v for k, v in campaign.items() if k not in (*_NAMED, "pairs")}))
    for key, word in _NAMED.items():
        named = campaign.get(key)
        for number, name in enumerate(named if isinstance(named, dict) else (), 1):
            if name not in used | SIDES:
                yield name, f"{word}{number}"


def _every_word(value: object) -> Iterator[str]:
    """Each key and word of a campaign."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from (str(key), *_every_word(below))
    elif isinstance(value, list):
        for below in value:
            yield from _every_word(below)
    else:
        yield str(value)


def redacted(path: Path, into: Path) -> Path:
    """Copy a result folder into a folder that is there, without what identifies its site. The copy,
    as NAME/TIME-ID whatever folder the original was moved into. Errors: StoreError; PlaceError.
    """
    try:
        redaction = Redaction(keys := read_keys(path / "campaign.yaml"))
    except StoreError as error:
        raise StoreError(
            f"{path / 'campaign.yaml'}: cannot be read, and so the names that --redact hides are"
            " not known; make the report without it"
        ) from error
    own, of = path.resolve().name, redaction.text(str(keys.get("name")))
    name = redaction.text(own) if _TIME_AND_ID.fullmatch(own) else "result"
    copy = into / (of if _CAMPAIGN.fullmatch(of) else "campaign") / name
    left_out = {each for pattern in _FREE_TEXT for each in path.glob(pattern)}
    copy.mkdir(parents=True)
    for file in files_inside(path):
        if left_out.isdisjoint((file, *file.parents)) and not file.name.startswith("."):
            _copy(redaction, file, copy / file.relative_to(path))
    return copy


def _rewritten(redaction: Redaction, file: Path) -> Iterator[str]:
    """The text of a file of a result, without what identifies its site. Errors: StoreError."""
    if file.suffix == ".jsonl":
        lines = JsonLines(file)
        for number, line in lines:
            rewritten = _rewritten_json(redaction, line, lines.where(number))
            if file.name != "journal.jsonl" or rewritten.get("kind") in _OF_JOURNAL:
                yield f"{json.dumps(rewritten)}\n"
        if lines.truncated:
            yield "{"  # as unfinished as it was
    elif file.suffix == ".json":
        yield json.dumps(_rewritten_json(redaction, raw := read_whole(file), str(file)), indent=1)
        if file.name == "plan.json":
            _refuse_same(redaction, json.loads(raw), file)
    else:
        texts = redaction.top.split(read_whole(file).decode("utf-8", "replace"))
        text = "".join(each if i % 2 else redaction.text(each) for i, each in enumerate(texts))
        yield re.sub(r"\A(# effective campaign of:).*", rf"\1 {REDACTED}", text)  # has each --set


def _refuse_same(redaction: Redaction, plan: Any, file: Path) -> None:
    """Two levels, pairs or hosts of a plan must not melt into one. Errors: StoreError."""
    words = dict[str, str]()
    for word in _every_word(plan):
        if (other := words.setdefault(redaction.text(word), word)) != word:
            raise StoreError(
                f"{file}: {other!r} and {word!r} would have the same stand-in, and what was"
                " measured with one that of the other; make the report without --redact"
            )


def _rewritten_json(redaction: Redaction, raw: bytes, where: str) -> Any:
    try:
        return redaction.value(json.loads(raw))
    except (ValueError, RecursionError) as error:
        raise StoreError(
            f"{where}: no JSON; `report` without --redact says what is wrong with the result"
        ) from error


def _copy(redaction: Redaction, file: Path, to: Path) -> None:
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with to.open("w", encoding="utf-8") as out:
            out.writelines(_rewritten(redaction, file))
    except OSError as error:
        raise PlaceError(f"cannot write {to}: {error.strerror}; free some space") from error
