"""The nouns of netbench as frozen values; no behaviour beyond names.

Units: sizes in bytes, times in nanoseconds, rates in bits/s, shares as fractions of 1. `None`: left
to the kernel, or not asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Never

NOTHING: Mapping[str, Never] = MappingProxyType({})
CONTROL = ",control"  # how the ids of controls end


class BootSpec(NamedTuple):
    """How a host is brought up on another kernel: kind `kexec`, `grub`, `qemu` (a guest of the lab
    `lab`) or `command`.

    `argv` is the user's program of `command`, run on this machine.
    """

    kind: str = "kexec"
    lab: str = ""
    argv: tuple[str, ...] = ()
    deadline: int | None = None  # ns, None: the way's own

    @property
    def from_within(self) -> bool:
        """Whether programs of the host boot it, as root."""
        return self.kind in ("kexec", "grub")


class Kernel(NamedTuple):
    """A kernel by name, from one source. On the host: `image` with `initrd`, or `release`
    (installed there: a release, or the beginning of one, such as 6.12, for the newest of them). On
    this machine: `deb`, a package; `tree`, a build tree's output; or `git`, a repository of which
    `rev` is built with `config` (a file, or a target of make such as tinyconfig), `fragment` (a
    file; "lab": netbench's own) and words for make. What came out is `tree` then.

    `append` is added to the kernel's command line. `layouts`: how often a kernel from git is
    linked, `layout`: the seed of this build's order of code (0: the tree's own). `builds`: what is
    booted in place of the kernel itself.
    """

    name: str
    image: str = ""
    initrd: str = ""
    deb: str = ""
    tree: str = ""
    release: str = ""
    append: str = ""
    git: str = ""
    rev: str = ""
    config: str = ""
    fragment: str = ""
    make: tuple[str, ...] = ()
    layouts: int = 1
    layout: int = 0
    builds: tuple[Kernel, ...] = ()

    @property
    def each(self) -> tuple[Kernel, ...]:
        """Its builds, each a kernel to boot with a name of its own; a kernel of one is its own."""
        if self.builds or self.layouts == 1:
            return self.builds or (self,)
        return tuple(
            self._replace(name=build_name(self.name, seed + 1), layouts=1, layout=seed)
            for seed in range(self.layouts)
        )


def build_name(kernel: str, build: int) -> str:
    """The name of a kernel's build, which counts from 1: `patched#2`."""
    return f"{kernel}#{build}"


class Host(NamedTuple):
    """A machine under test. `ssh` is an OpenSSH destination, or None for `local` (this machine).
    `run_as`: the user as whom data moves where the login is root's; "": as the login.
    """

    name: str
    ssh: str | None = None
    address: str | None = None
    interface: str | None = None
    ssh_config: str | None = None  # a file of OpenSSH's configuration in place of ~/.ssh/config
    boot: BootSpec = BootSpec()
    run_as: str = ""

    @property
    def local(self) -> bool:
        return self.ssh is None

    def data_address(self, ip: int) -> str:
        """The address that data goes to, of this version of IP; else the loopback's."""
        return self.address or ("::1" if ip == 6 else "127.0.0.1")


class Pair(NamedTuple):
    """A sending and a receiving host, by name."""

    sender: str
    receiver: str

    @property
    def name(self) -> str:
        return f"{self.sender}>{self.receiver}"


class Link(NamedTuple):
    """A part of the network that pairs share: `hosts` are those on one side of it, so that a pair
    uses it if exactly one of its ends is among them. At most `capacity` pairs use it at once.
    """

    hosts: tuple[str, ...]
    capacity: int = 1

    def used_by(self, pair: Pair) -> bool:
        """Whether the data of a pair goes over it."""
        return (pair.sender in self.hosts) != (pair.receiver in self.hosts)


@dataclass(frozen=True)
class Source:
    """Where the sender takes bytes: `memory`, `zero`, `file` (path) or `files` (count of size)."""

    kind: str = "memory"
    path: str = ""
    count: int = 0
    size: int = 0


class Sink(NamedTuple):
    """Where the receiver puts bytes: kind `discard` or `file` (overwrite: an existing one)."""

    kind: str = "discard"
    path: str = ""
    overwrite: bool = False


class Pin(NamedTuple):
    """CPU placement: kind `none`, `same`, `apart`, or `cpus` with CPU numbers for each side, which
    its threads take in turn ((): not pinned).
    """

    kind: str = "none"
    sender: tuple[int, ...] = ()
    receiver: tuple[int, ...] = ()


class Tool(NamedTuple):
    """An external program as a cell: `none`, a built-in one, or one of the campaign's own.

    Of its own: the command lines of its client and, where it has one, of its server; `ready` is a
    pattern of what the server prints once it can be connected to ("": it listens then); `captures`
    are metrics, each with a pattern of the output that has its number. Patterns are regular
    expressions with named groups.
    """

    name: str = "none"
    client: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    ready: str = ""
    captures: tuple[tuple[str, str], ...] = ()

    @property
    def external(self) -> bool:
        """Whether a program moves the data in the engine's place."""
        return self.name != "none"


WHOLE_FILE = 0  # Transfer.chunk: the whole file a call
OR_DEFAULT = " or default"  # Transfer.congestion: the host's own where a user may not choose NAME


class Transfer(NamedTuple):
    """What one run moves and how: one level of each key of `transfer:`."""

    send: str = "write"
    receive: str = "read"
    source: Source = Source()
    sink: Sink = Sink()
    chunk: int = 64 * 1024  # WHOLE_FILE: one file a call
    receive_chunk: int = 64 * 1024
    align: int = 0
    preamble: int = 0
    send_buffer: int | None = None  # None: `default`, the kernel's autotuning
    receive_buffer: int | None = None
    streams: int = 1
    threads: int | None = None  # None: `default`, one a stream; of most pinned, one a CPU
    pin: Pin = Pin()
    congestion: str | None = None  # NAME or `NAME or default`; None: `default`, the host's own
    rate: int | None = None  # None: `none`, as fast as it goes
    ip: int = 4
    duration: int | None = 10 * 10**9  # exactly one of duration and bytes is set
    bytes: int | None = None
    warmup: int = 10**9
    cache: str = "warm"
    direct: bool = False
    fsync: str = "none"  # or `window`, `after`
    port: tuple[int, int] | None = None  # the inclusive range of data ports, None: any
    sample: int = 100 * 10**6  # interval between samples, 0: none
    tool: Tool = Tool()
    options: Mapping[str, int | str] = NOTHING  # methods' own

    @property
    def asks(self) -> bool:
        """Whether it is of requests, not of bulk."""
        return self.send in ("request", "connect")

    @property
    def requests(self) -> int | None:
        """How many bound a run of requests, where they do; of connections that stay bytes do."""
        if self.bytes is None or not self.asks:
            return None
        size = int(self.options.get("request", 1)) if self.send == "request" else 1
        return self.bytes // size


class Factor(NamedTuple):
    """A swept key and its levels as they were written, as tables have them."""

    name: str
    levels: tuple[str, ...]
    costly: bool = False  # a change resets a link or a host


@dataclass(frozen=True)
class SettingLevel:
    """A level of a setting: `value` as the host reads it back, `written` as in the campaign. Two
    levels with the same value are equal. `as_is` is what the host has without the setting.
    """

    value: str
    written: str = field(compare=False)

    def __str__(self) -> str:
        return self.written


class Cell(NamedTuple):
    """One combination of levels. `factors` maps each factor to its word; `transfer` and `settings`
    (beyond the campaign-wide ones, by key, `sender.tso`) are what they mean. `control`: it is the
    baseline of a comparison, a second time.
    """

    id: str
    factors: Mapping[str, str]
    transfer: Transfer
    settings: Mapping[str, SettingLevel] = NOTHING
    kernel: str | None = None
    meters: tuple[str, ...] | None = None  # None: the campaign's
    control: bool = False


class Command(NamedTuple):
    """A setting of the campaign's own: programs that set a level, print it, and put it back."""

    apply: tuple[str, ...]
    read: tuple[str, ...]
    undo: tuple[str, ...]


class Repeat(NamedTuple):
    """When a cell closes: `min`..`max` runs, `confidence` and `precision` as fractions, the metrics
    that must be that precise; `until`: `precision`, or `verdict`.
    """

    min: int = 10
    max: int = 30
    confidence: float = 0.95
    precision: float = 0.025
    metrics: tuple[str, ...] = ("throughput",)
    boots: int = 1
    until: str = "precision"


class Compare(NamedTuple):
    """Which factor's levels are compared, against which level, the equivalence margin (a
    fraction, None: no margin), and whether the baseline runs a second time as a control.
    """

    factor: str
    baseline: str
    margin: float | None = None
    control: bool = False


class ProfileSpec(NamedTuple):
    """Which cells are profiled at the end (`all`, or those that `changed` against the baseline),
    for how many ns a run, at how many samples a second of each CPU, in how many runs.
    """

    cells: str = "changed"
    duration: int = 5 * 10**9
    frequency: int = 997
    runs: int = 3


class Lab(NamedTuple):
    """Hosts made on this machine: kind `netns` or `qemu`; bits/s and ns of the data link."""

    kind: str
    rate: int | None = None
    delay: int | None = None


class Part(NamedTuple):
    """One of `of` parts of a campaign, `number` counts from 1: it has some of the campaign's pairs.
    `pairs`: the names of all of them, in the order of the campaign.
    """

    number: int
    of: int
    pairs: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class Campaign(NamedTuple):
    """A campaign file, validated; of a part of it, `pairs` and `hosts` are those of the part.

    `text` is its effective YAML (with --set applied); `warnings` what it may not mean; `groups` are
    hosts by the name of their group, `links` what pairs share, by name.
    """

    name: str
    about: str
    hosts: Mapping[str, Host]
    pairs: tuple[Pair, ...]
    factors: tuple[Factor, ...]
    cells: tuple[Cell, ...]
    repeat: Repeat
    seed: int
    meters: tuple[str, ...]  # all that some cell has
    verify: bool = True
    settings: Mapping[str, SettingLevel] = NOTHING
    commands: Mapping[str, Command] = {}
    tools: Mapping[str, Tool] = {}
    kernels: Mapping[str, Kernel] = {}
    limit: int | None = None
    lab: Lab | None = None
    footprint: int = 0  # bytes that each soaker goes through
    compare: Compare | None = None
    profile: ProfileSpec | None = None
    overlap: str = "round"  # or `none`, `kernel`: which pairs run side by side
    groups: Mapping[str, tuple[str, ...]] = NOTHING  # hosts by name
    links: Mapping[str, Link] = NOTHING
    part: Part | None = None
    auto: tuple[str, ...] = ()  # keys of its transfer that a pilot finds before it begins
    text: str = ""
    source: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def all_pairs(self) -> tuple[str, ...]:
        """The names of the campaign's pairs, of those too that other parts of it run."""
        return self.part.pairs if self.part else tuple(pair.name for pair in self.pairs)

    @property
    def ip(self) -> int:
        """The version of IP of the data addresses, as the first cell has it."""
        return self.cells[0].transfer.ip

    @property
    def roles(self) -> Mapping[str, str]:
        """The hosts that take part, each with a role that it has in some pair: its worker in that
        role is the one that is asked about the host.
        """
        receivers = {pair.receiver: "receiver" for pair in self.pairs}
        return receivers | {pair.sender: "sender" for pair in self.pairs}

    def needs_root(self, host: str) -> bool:
        """Whether a host's settings or kernel are changed from within, which takes root there."""
        boots = self.boots_hosts and self.hosts[host].boot.from_within
        return boots or bool(self.settings) or any(cell.settings for cell in self.cells)

    @property
    def builds(self) -> list[Kernel]:
        """Every kernel that hosts are booted on: the builds of all."""
        return [build for kernel in self.kernels.values() for build in kernel.each]

    @property
    def boots_hosts(self) -> bool:
        """Whether the hosts are booted."""
        return bool(self.kernels) or self.repeat.boots > 1

    @property
    def handled(self) -> tuple[str, ...]:
        """What the campaign sets itself: factors of its cells, and settings that it holds."""
        factors = (name for cell in self.cells for name in cell.factors)
        return tuple(dict.fromkeys([*factors, *self.settings]))
