"""The campaign file's keys as pydantic models: the shape of every key by itself; what keys mean
together is checked elsewhere.
"""

from __future__ import annotations

import ipaddress
import shlex
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, create_model

from netbench.campaign import transfer_values, words
from netbench.campaign.keys import Keys
from netbench.campaign.transfer import PLANNED_METERS, TransferKeys, transfer_model, with_planned
from netbench.campaign.tree import compact
from netbench.campaign.words import Kind, expected, nearest
from netbench.engine.catalogue import Catalogue, Row
from netbench.model import BootWay, Kernel, Lab

NAME = "[A-Za-z0-9][A-Za-z0-9._-]*"
LABS = ("netns", "qemu")
WAYS = ("kexec", "grub")
METRICS = (
    "throughput",
    *(f"{side}_{what}" for what in ("cpu", "demand") for side in ("sender", "receiver", "system")),
)
_NAMED = words.matching(
    "a name of letters, digits, dots, dashes and underscores, such as sosend-2", NAME
)
_HOST = words.matching("a host's name of letters, digits, dots, dashes and underscores", NAME)


def _version(value: Any) -> int:
    if value == "1":
        return 1
    raise expected("netbench: 1, the version of the file's format", value)


def _address(value: Any) -> str:
    try:
        ipaddress.ip_address(value if isinstance(value, str) else "")
    except ValueError:
        raise expected("an IP address such as 192.168.2.1 or fd00::1", value) from None
    return str(value)


def _level(value: Any) -> str:
    if value is None or value in ("", {}, []):
        raise expected("a level", value)
    return compact(value)


class LabKeys(Keys):
    """Hosts that are made on this machine."""

    kind: Annotated[str, words.choice("", LABS)] = Field(description="kind: netns or qemu")
    rate: Annotated[int | None, words.rate()] = Field(
        default=None, description="rate of the data link"
    )
    delay: Annotated[int | None, words.time(1)] = Field(
        default=None, description="delay of the data link, each way"
    )


def _lab(value: Any) -> Lab:
    if isinstance(value, dict) and value:
        keys = LabKeys.model_validate(value)
        return Lab(keys.kind, keys.rate, keys.delay)
    if value in LABS:
        return Lab(value)
    raise expected(
        "netns, qemu or a mapping such as {kind: netns, rate: 1Gb/s}", value, nearest(value, LABS)
    )


def _argv(value: Any) -> tuple[str, ...]:
    argv = shlex.split(value) if isinstance(value, str) else value
    if (
        not isinstance(argv, list)
        or not argv
        or not all(isinstance(word, str) and word for word in argv)
    ):
        raise expected("a program and its arguments, as a line or as a list of words", value)
    return tuple(argv)


def _metric(value: Any) -> str:
    if isinstance(value, str):
        name, dot, meter = value.partition(".")
        if name in METRICS and (not dot or (meter and name != "throughput")):
            return value
    raise expected(
        f"a metric ({words.listed(METRICS)}; CPU metrics also as NAME.METER)",
        value,
        nearest(value, METRICS),
    )


def _cells(value: Any) -> str:
    if (isinstance(value, str) and value) or (isinstance(value, list) and value):
        return compact(value)
    raise expected("changed, all, or a list of cells", value)


LEVEL = Kind(_level, {})
ARGV = Kind(
    _argv, {"type": ["string", "array"], "items": {"type": "string"}, "minItems": 1, "minLength": 1}
)
METRIC = Kind(_metric, {"type": "string", "pattern": f"^({'|'.join(METRICS)})([.].+)?$"})


class BootKeys(Keys):
    """How a host is brought up on another kernel."""

    way: Annotated[str | None, words.choice("a way to boot", WAYS)] = Field(
        default=None, description="way: kexec or grub"
    )
    qemu: Annotated[str | None, _NAMED] = Field(
        default=None, description="qemu: the lab whose guest the host is"
    )
    command: Annotated[tuple[str, ...] | None, ARGV] = Field(
        default=None, description="command: a program of this machine that boots {host} on {kernel}"
    )
    console: Annotated[str | None, words.text("a file of this machine")] = Field(
        default=None,
        description="console: a file of this machine that the host's console is written to",
    )
    deadline: Annotated[int | None, words.time(1)] = Field(
        default=None, description="deadline: longest time that a boot takes"
    )


def _boot(value: Any) -> BootWay:
    if value in WAYS:
        return BootWay(value)
    if not isinstance(value, dict) or not value:
        raise expected(
            "kexec, grub or a mapping such as {command: [reboot-host, '{host}', '{kernel}']}",
            value,
            nearest(value, WAYS),
        )
    keys = BootKeys.model_validate(value)
    named = [key for key in ("way", "qemu", "command") if getattr(keys, key) is not None]
    if len(named) != 1:
        raise words.wrong(
            f"expected one of way, qemu or command, got {' and '.join(named) or 'none'}"
        )
    kind = keys.way or ("qemu" if keys.qemu else "command")
    return BootWay(kind, keys.qemu or "", keys.command or (), keys.console or "", keys.deadline)


_BOOT = Kind(_boot, {"anyOf": [{"enum": list(WAYS)}, BootKeys.model_json_schema()]})


class HostKeys(Keys):
    """A host. Without `ssh` it is this machine."""

    ssh: Annotated[
        str | None,
        words.matching("an SSH destination such as root@snd.example", r"[^\s\0-][^\s\0]*"),
    ] = Field(default=None, description="OpenSSH destination; aliases of ~/.ssh/config work")
    address: Annotated[str | None, Kind(_address, {"type": "string"})] = Field(
        default=None, description="data address"
    )
    interface: Annotated[
        str | None, words.matching("an interface's name such as eth1", r"[^\s/]{1,15}")
    ] = Field(default=None, description="network interface of the data address")
    boot: Annotated[BootWay, _BOOT] = Field(
        default=BootWay(), description="how it is brought up on another kernel"
    )


def _host(value: Any) -> Any:
    if value == "local":
        return {}
    if isinstance(value, dict):
        return value
    raise expected(
        "local or a mapping with ssh, address and interface", value, nearest(value, ("local",))
    )


class PairKeys(Keys):
    """A sender and a receiver."""

    sender: Annotated[str, _HOST] = Field(description="sender: the name of a host")
    receiver: Annotated[str, _HOST] = Field(description="receiver: the name of a host")


class KernelKeys(Keys):
    """A kernel to boot, from one source."""

    image: Annotated[str | None, words.text("a path on the host")] = Field(
        default=None, description="image: a kernel on the host"
    )
    initrd: Annotated[str | None, words.text("a path on the host")] = Field(
        default=None, description="initrd: that of image"
    )
    deb: Annotated[str | None, words.text("a file of this machine")] = Field(
        default=None, description="deb: a linux-image package"
    )
    tree: Annotated[str | None, words.text("a folder of this machine")] = Field(
        default=None, description="tree: a kernel build tree after bindeb-pkg or tar-pkg"
    )
    release: Annotated[
        str | None, words.text("a release such as 6.12.38-amd64, or its beginning")
    ] = Field(default=None, description="release: a kernel that is installed on the host")
    append: Annotated[str | None, words.text("words of a kernel command line")] = Field(
        default=None, description="append: words for the kernel's command line"
    )

    def kernel(self, name: str) -> Kernel:
        """The kernel that the keys name."""
        written = {key: value for key, value in self.model_dump().items() if value is not None}
        return Kernel(name, **written)


def _kernel(value: Any) -> Any:
    sources = ("image", "deb", "tree", "release")
    if not isinstance(value, dict):
        raise expected(f"a mapping with one of {words.listed(sources)}", value)
    named = [key for key in sources if key in value]
    if len(named) != 1:
        raise words.wrong(
            f"expected one of {words.listed(sources)}, got {' and '.join(named) or 'none'}"
        )
    if "initrd" in value and "image" not in value:
        raise words.wrong(f"expected initrd with image, got it with {named[0]}")
    return value


class CommandKeys(Keys):
    """A setting of the campaign's own, as commands."""

    apply: Annotated[tuple[str, ...], ARGV] = Field(
        description="apply: the program that sets {level}"
    )
    read: Annotated[tuple[str, ...], ARGV] = Field(
        description="read: the program that prints the level"
    )
    undo: Annotated[tuple[str, ...], ARGV] = Field(
        description="undo: the program that puts back {level}, the one that was read"
    )


class RepeatKeys(Keys):
    """When a cell closes."""

    min: Annotated[int | None, words.number("a number of runs", 1, 100_000)] = Field(
        default=None, description="fewest runs"
    )
    max: Annotated[int | None, words.number("a number of runs", 1, 100_000)] = Field(
        default=None, description="most runs"
    )
    confidence: Annotated[
        float, words.share("a confidence from 50% to below 100%,", "95%", 0.5, 1)
    ] = 0.95
    precision: Annotated[
        float, words.share("a precision above 0% and below 100%,", "2.5%", 0, 1)
    ] = 0.025
    metrics: Annotated[
        list[Annotated[str, METRIC]], words.list_of("a list of metrics such as [throughput]")
    ] = Field(default=["throughput"], description="what must be precise")
    boots: Annotated[int, words.number("a number of boots", 1, 1000)] = 1


class OrderKeys(Keys):
    """The order of runs: the same seed gives the same order."""

    seed: Annotated[int, words.number("a seed")] = Field(
        default=1, description="seed: a whole number"
    )


class ProfileKeys(Keys):
    """Which cells are profiled, and for how long."""

    cells: Annotated[str, Kind(_cells, {"type": ["string", "array"]})] = "changed"
    seconds: Annotated[int, transfer_values.SECONDS] = 5 * 10**9


class CompareKeys(Keys):
    """Which levels are compared."""

    factor: Annotated[str, words.text("a swept key")] = Field(description="factor: a key of sweep")
    baseline: Annotated[str, LEVEL] = Field(
        description="baseline: the level that the others are compared with"
    )
    margin: Annotated[
        float | None, words.share("a margin above 0% and below 100%,", "1%", 0, 1)
    ] = None


_NAMES = words.mapping_of
_VERSION = Kind(_version, {"enum": [1, "1"]})
_SETTING_LEVELS = Annotated[
    dict[str, Annotated[str, LEVEL]], _NAMES("a mapping of settings such as {mtu: 9000}")
]
_ENTRIES = list[
    Annotated[
        dict[str, Annotated[Any, Kind(lambda v: v, {})]], _NAMES("a mapping of keys and levels")
    ]
]
_PROFILE = _NAMES("a mapping such as {cells: changed, seconds: 5}")
_COMPARE = _NAMES("a mapping such as {factor: send, baseline: write}")
_LAB = Kind(_lab, {"anyOf": [{"enum": list(LABS)}, LabKeys.model_json_schema()]})
_LEVELS = _NAMES("a mapping of keys and their levels")
_HOSTS = dict[Annotated[str, _HOST], Annotated[HostKeys, BeforeValidator(_host)]]


class FileKeys(Keys):
    """Base of the model of the whole file; the model itself is made from a catalogue."""

    netbench: Annotated[int, _VERSION] = Field(
        description="netbench: 1, the version of the file's format"
    )
    name: Annotated[str, _NAMED] = Field(
        description="name: a word that names the campaign and its results"
    )
    about: Annotated[str, words.text("a text")] = Field(
        default="", description="what the campaign asks, in a sentence"
    )
    hosts: Annotated[_HOSTS, _NAMES("a mapping of hosts such as {here: local}")] = Field(
        default={}, description="machines by name; left out: one host, `here: local`"
    )
    ssh_config: Annotated[str | None, words.text("a path")] = Field(
        default=None,
        description="a file of OpenSSH's configuration for the hosts, in place of ~/.ssh/config",
    )
    lab: Annotated[Lab | None, _LAB] = Field(
        default=None, description="makes the hosts on this machine"
    )
    pairs: Annotated[
        list[PairKeys], words.list_of("a list of pairs such as [{sender: snd, receiver: rcv}]")
    ] = Field(
        default=[],
        description="who sends to whom; left out: the first two hosts, or the only one with itself",
    )
    verify: Annotated[bool, words.switch()] = Field(
        default=True, description="check once per cell that what was sent arrives"
    )
    settings: _SETTING_LEVELS = Field(
        default={}, description="settings held for the whole campaign"
    )
    sweep: Annotated[dict[str, Any], _LEVELS] = Field(default={}, description="factors, crossed")
    include: Annotated[_ENTRIES, words.list_of("a list of mappings", empty=True)] = Field(
        default=[], description="cells to extend or to add, as in a GitHub Actions matrix"
    )
    exclude: Annotated[_ENTRIES, words.list_of("a list of mappings", empty=True)] = Field(
        default=[], description="combinations to leave out, as in a GitHub Actions matrix"
    )
    kernels: Annotated[
        dict[str, Annotated[KernelKeys, BeforeValidator(_kernel)]], _NAMES("a mapping of kernels")
    ] = Field(default={}, description="kernels by name")
    command: Annotated[dict[str, CommandKeys], _NAMES("a mapping of commands")] = Field(
        default={}, description="settings of the campaign's own, by name"
    )
    repeat: RepeatKeys = Field(default=RepeatKeys(), description="when a cell closes")
    order: OrderKeys = Field(default=OrderKeys(), description="the order of runs; left out: seed 1")
    profile: Annotated[ProfileKeys | None, _PROFILE] = Field(
        default=None, description="profiles of some cells"
    )
    compare: Annotated[CompareKeys | None, _COMPARE] = Field(
        default=None, description="levels that are compared"
    )
    limit: Annotated[int | None, words.time(1)] = Field(
        default=None, description="longest time that the campaign may take"
    )
    transfer: TransferKeys = Field(
        default=TransferKeys(),
        description="one level of each key of a transfer; a sweep has several",
    )
    meters: list[str] = Field(default=["rusage", "procstat"], description="what accounts CPU time")

    @classmethod
    def nearest_key(cls, key: str) -> str:
        """A key of transfer that was written a level too high is told with its path."""
        below = cls.model_fields["transfer"].annotation
        if (
            isinstance(below, type)
            and issubclass(below, TransferKeys)
            and key in below.model_fields
        ):
            return f"transfer.{key}"
        return super().nearest_key(key)


@lru_cache(maxsize=8)
def _model(rows: tuple[Row, ...]) -> type[FileKeys]:
    catalogue = Catalogue.of(rows)
    transfer = transfer_model(catalogue)
    meter = words.choice("a meter", with_planned(catalogue.meters, PLANNED_METERS))
    meters = Annotated[
        list[Annotated[str, meter]],
        words.list_of("a list of meters such as [rusage, procstat]", empty=True),
    ]
    inherited = FileKeys.model_fields
    fields: dict[str, Any] = {
        "transfer": (
            transfer,
            Field(default=transfer(), description=inherited["transfer"].description),
        ),
        "meters": (
            meters,
            Field(default=inherited["meters"].default, description=inherited["meters"].description),
        ),
    }
    return create_model("Campaign", __base__=FileKeys, **fields)


def file_model(catalogue: Catalogue) -> type[FileKeys]:
    """The pydantic model of a campaign file for what an engine offers."""
    return _model(catalogue.rows)
