"""A campaign that judges one revision of a kernel against another: written as a file, which is kept
and can be edited and run again.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterator, Mapping
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from netbench import campaign
from netbench.base.errors import CampaignError, RequestError
from netbench.base.units import format_duration, parse_time
from netbench.campaign.load import NO_FILE, written_out
from netbench.campaign.tree import plain
from netbench.campaign.yaml_tree import BYTES_MAX, decode
from netbench.plan.plan import BOOT_SECONDS, Plan
from netbench.stats.power import smallest_difference

SUITES = ("bulk", "zerocopy", "small")
BASE, PATCHED = "base", "patched"
LAB = "lab"
BOOTS = (4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
"""Of each kernel: an interval over fewer than the first is too wide to show anything."""
BLOCKS = (8, 6, 4, 3, 2)  # within a boot: what is dropped first, for more boots
WINDOWS = (1, 2, 4)  # a run's duration through these, where all cells but one are dropped
SHOWN = 0.25  # a time that can show no change of this size is refused
OF_HOSTS = "hosts ssh_config groups pairs links overlap settings command".split()  # keys
SECONDS_LEFT = 0.9  # of the time: the rest is for what takes longer than planned


class Question(NamedTuple):
    """What is asked. `on`: "lab", or a file with `hosts:`; `suite`: one of SUITES, or a campaign
    file without kernels; `config`, `fragment`: of the kernels ("": what the schema has).
    """

    base: str
    patched: str
    repository: Path
    on: str
    suite: str
    seconds: float
    config: str = ""
    fragment: str = ""


class Boots(NamedTuple):
    """What boots are like: standard deviations of the logarithms of what two kernels differ by,
    `between` boots and `within` them, of a block, and the seconds that a boot takes: guesses.
    """

    between: float
    within: float
    seconds: float

    @property
    def words(self) -> str:
        return (
            f"boots differ by {self.between:.1%}, runs within one by {self.within:.1%}, and a boot"
            f" takes {self.seconds:.0f} s (guessed)"
        )


GUEST = Boots(0.2, 0.1, 13.0)  # emulated, two on two CPUs
HOST = Boots(0.02, 0.02, BOOT_SECONDS)


class Written(NamedTuple):
    """The text of a campaign, the change that it can show in 80% of the cases, as a fraction, by
    what boots are like, the seconds that it takes, and the levels that there was no time for.
    """

    text: str
    shown: float
    boots: Boots
    seconds: float
    dropped: tuple[str, ...]


def written(question: Question) -> Written:
    """The campaign that fits the time: as many cells as leave a change of SHOWN to be seen, then
    the boots and blocks that show the smallest one. Errors: RequestError for files that cannot be
    used, and where the time is too short; CampaignError.
    """
    boots = GUEST if question.on == LAB else HOST
    needed = math.inf
    for keys, dropped in _narrowing(_keys(question)):
        planned = campaign.parse(_text(question, keys), "the campaign of judge")
        planned = planned._replace(limit=None)
        comparisons = max(len(planned.cells) // len(planned.kernels) * len(planned.pairs), 1)
        confidence = 1 - (1 - planned.repeat.confidence) / comparisons
        best = math.inf, math.inf, 0, 0
        for number, blocks in product(BOOTS, BLOCKS):
            runs = number * blocks
            repeat = planned.repeat._replace(min=runs, max=runs, boots=number)
            again = len(planned.kernels) * number + 1  # the last back to what hosts came with
            seconds = Plan(planned._replace(repeat=repeat)).seconds()[1]
            seconds = (seconds + again * (boots.seconds - BOOT_SECONDS)) / SECONDS_LEFT
            sd = math.hypot(boots.between, boots.within / math.sqrt(blocks))
            shown = math.expm1(smallest_difference(sd, number, confidence))
            if seconds <= question.seconds:
                best = min(best, (shown, seconds, number, blocks))
            if shown <= SHOWN:
                needed = min(needed, seconds)
        shown, seconds, number, blocks = best
        if shown <= SHOWN:
            runs = number * blocks
            keys["repeat"] |= {"min": runs, "max": runs, "boots": number}
            seconds *= SECONDS_LEFT
            return Written(_text(question, keys), shown, boots, seconds, dropped)
    remedy = f"nor can {BOOTS[-1]} boots of each kernel: find out why they differ so much"
    if math.isfinite(needed):
        remedy = f"give it --time {math.ceil(needed / 60)}m"
    raise RequestError(
        f"judge: --time {format_duration(question.seconds)} can show no change of {SHOWN:.0%}:"
        f" {boots.words}; {remedy}"
    )


def _narrowing(keys: dict[str, Any]) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """The campaign with ever fewer levels, the last of a file first, then with shorter runs."""
    dropped: tuple[str, ...] = ()
    yield keys, dropped
    levels = {name: each for name, each in keys["sweep"].items() if name != "kernel"}
    while longest := max(
        (name for name, each in levels.items() if isinstance(each, list) and len(each) > 1),
        key=lambda name: len(levels[name]),
        default="",
    ):
        *left, last = levels[longest]
        levels[longest] = left
        dropped = (f"{longest}={last}", *dropped)
        keys = keys | {"sweep": keys["sweep"] | levels}
        yield keys, dropped
    transfer = keys.get("transfer", {})
    if isinstance(transfer, dict) and "duration" in transfer:
        whole = parse_time(transfer["duration"])
        for parts in WINDOWS[1:]:
            shorter = {"duration": f"{round(whole / parts / 1e6)}ms"}
            yield (
                keys | {"transfer": transfer | shorter},
                (*dropped, f"{parts - 1}/{parts} of a run"),
            )


def _keys(question: Question) -> dict[str, Any]:
    """The campaign's keys, all but how often it repeats."""
    suite, named = _suite(question.suite), Path(question.suite).stem
    sweep = suite.pop("sweep", None) or {}
    repeat = suite.pop("repeat", None) or {}
    own = {name: repeat[name] for name in ("metrics", "confidence") if name in repeat}
    if question.on != LAB and not question.config:
        raise RequestError(
            "judge: a kernel for hosts takes their configuration: give --config, such as"
            " /boot/config-RELEASE of one of them"
        )
    build = {"config": question.config, "fragment": question.fragment}
    build = {key: os.path.expanduser(word or "") for key, word in build.items()}
    kernels = {
        name: {"git": str(question.repository.resolve()), "rev": rev}
        | {k: w if NO_FILE.fullmatch(w) else os.path.abspath(w) for k, w in build.items() if w}
        for name, rev in ((BASE, question.base), (PATCHED, question.patched))
    }
    hosts = _hosts(question.on)
    both = {}
    for key in suite.keys() & hosts.keys():
        one, two = suite[key] or {}, hosts[key] or {}
        if other := [name for name in one.keys() & two.keys() if one[name] != two[name]]:
            raise RequestError(f"judge: --on and --suite give {key}: {other[0]} otherwise")
        both[key] = one | two
    return (
        {"netbench": 1, "name": f"judge-{named}"}
        | suite
        | hosts
        | both
        | {
            "kernels": kernels,
            "sweep": {"kernel": [BASE, PATCHED], **sweep},
            "compare": {"factor": "kernel", "baseline": BASE},
            "repeat": {"metrics": ["throughput", "system_demand"], **own},
            "limit": f"{round(question.seconds)}s",
        }
    )


def _suite(name: str) -> dict[str, Any]:
    """The keys of a suite, without what judge says itself."""
    if name in SUITES:
        text = files("netbench.kernels.suites").joinpath(f"{name}.yaml").read_text()
    else:
        text = _read(name, f"--suite: expected {', '.join(SUITES)}, or a campaign file")
    keys = _mapping(text, name)
    own = ("netbench", "name", "kernels", "compare", "limit", "lab", *OF_HOSTS[:-2])
    return {key: value for key, value in keys.items() if key not in own}


def _hosts(on: str) -> dict[str, Any]:
    if on == LAB:
        return {"lab": "qemu", "hosts": {"snd": {}, "rcv": {}}}
    keys = _mapping(_read(on, "--on: expected lab, or a file with `hosts:`"), on)
    if "hosts" not in keys:
        raise RequestError(f"judge: {on} names no `hosts:`; see the campaign file's reference")
    return {key: value for key, value in keys.items() if key in OF_HOSTS}


def _read(path: str, otherwise: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return decode(file.read(BYTES_MAX + 1), path)
    except OSError as error:
        why = error.strerror
        raise RequestError(f"judge: {otherwise}; cannot read {path}: {why}") from error


def _mapping(text: str, path: str) -> dict[str, Any]:
    """The keys of a campaign file, or of a part of one."""
    problems, _ = written_out(text, path)
    if problems.noted:
        raise CampaignError(path, problems.noted)
    keys: dict[str, Any] = {name: plain(node) for name, node in problems.tree.entries.items()}
    for name in ("sweep", "repeat", "settings", "command"):
        if not isinstance(keys.get(name) or {}, dict):
            raise RequestError(f"judge: {path}: expected a mapping as {name}:")
    return keys


def _text(question: Question, keys: Mapping[str, Any]) -> str:
    words = [
        *("--base", question.base, "--patched", question.patched),
        *("--repo", str(question.repository), "--on", question.on),
        *("--suite", question.suite, "--time", f"{round(question.seconds)}s"),
        *(("--config", question.config) if question.config else ()),
        *(("--fragment", question.fragment) if question.fragment else ()),
    ]
    head = f"# written by: python -m netbench judge {shlex.join(words)}\n"
    return head + yaml.safe_dump(dict(keys), sort_keys=False, width=100)
