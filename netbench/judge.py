"""A campaign that judges one revision of a kernel against another: written as a file, which is kept
and can be edited and run again.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from netbench import campaign
from netbench.errors import RequestError
from netbench.model import Campaign
from netbench.plan import Plan
from netbench.units import format_duration

SUITES = ("bulk", "zerocopy", "small")
BASE, PATCHED = "base", "patched"
LAB = "lab"
BOOTS = (8, 6, 5, 4, 3, 2)  # of each kernel: as many as there is time for
BLOCKS = (8, 6, 4, 3, 2)  # within a boot, then
OF_HOSTS = ("hosts", "pairs", "settings")  # keys that a file with hosts may have
SECONDS_LEFT = 0.9  # of the time: the rest is for what takes longer than planned


@dataclass(frozen=True)
class Question:
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


def written(question: Question) -> str:
    """The text of the campaign. Errors: RequestError for files that cannot be used, and where the
    time is too short; CampaignError.
    """
    keys = _keys(question)
    for boots in BOOTS:
        for blocks in BLOCKS:
            runs = boots * blocks
            keys["repeat"] |= {"min": runs, "max": runs, "boots": boots}
            text = _text(question, keys)
            planned = _parsed(text)
            if Plan(planned).seconds()[1] <= SECONDS_LEFT * question.seconds:
                return text
    least = format_duration(Plan(planned).seconds()[1] / SECONDS_LEFT)
    raise RequestError(
        f"judge: --time {format_duration(question.seconds)} is too short: {boots} boots of each"
        f" kernel take {least}; give it more, or a smaller --suite"
    )


def _parsed(text: str) -> Campaign:
    return campaign.parse(text, "the campaign of judge")


def _keys(question: Question) -> dict[str, Any]:
    """The campaign's keys, all but how often it repeats."""
    suite, named = _suite(question.suite), Path(question.suite).stem
    sweep = suite.pop("sweep", {})
    repeat = suite.pop("repeat", {})
    kept = {name: repeat[name] for name in ("metrics", "confidence") if name in repeat}
    if question.on != LAB and not question.config:
        raise RequestError(
            "judge: a kernel for hosts takes their configuration: give --config, such as"
            " /boot/config-RELEASE of one of them"
        )
    build = {"config": question.config, "fragment": question.fragment}
    kernels = {
        name: {"git": str(question.repository.resolve()), "rev": rev}
        | {key: word for key, word in build.items() if word}
        for name, rev in ((BASE, question.base), (PATCHED, question.patched))
    }
    return (
        {"netbench": 1, "name": f"judge-{named}"}
        | suite
        | _hosts(question.on)
        | {
            "kernels": kernels,
            "sweep": {"kernel": [BASE, PATCHED], **sweep},
            "compare": {"factor": "kernel", "baseline": BASE},
            "repeat": {"metrics": ["throughput", "system_demand"], **kept},
            "limit": f"{round(question.seconds)}s",
        }
    )


def _suite(name: str) -> dict[str, Any]:
    """The keys of a suite, without what judge says itself."""
    if name in SUITES:
        text = files("netbench.suites").joinpath(f"{name}.yaml").read_text()
    else:
        text = _read(name, f"--suite: expected {', '.join(SUITES)}, or a campaign file")
    keys = _mapping(text, name)
    own = ("netbench", "name", "kernels", "compare", "limit", "hosts", "lab", "pairs")
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
        return Path(path).read_text()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise RequestError(f"judge: {otherwise}; cannot read {path}: {why}") from error


def _mapping(text: str, path: str) -> dict[str, Any]:
    try:
        keys = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise RequestError(f"judge: {path} is not YAML: {error}") from error
    if not isinstance(keys, dict):
        raise RequestError(f"judge: {path}: expected a mapping, such as a campaign file is")
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
