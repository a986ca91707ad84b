"""The journal: journal.jsonl, what must be known after a crash. Each entry is one line with its
`time` and `kind`, forced to the disk before what it announces is done.

The journal that is acted on is in the account's state (campaign_state.py); that of a result is a
copy. Keys that say where the controller was, `machine` and `netns`, are of both.

Every key of an entry is the name of a field here, and every kind is in ENTRIES.
"""

from __future__ import annotations

import hmac
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import ConfigDict

from netbench.base.cancel import held_back
from netbench.base.errors import PlaceError, StoreError
from netbench.base.json_lines import JsonLines, now, to_line
from netbench.base.opening import open_inside
from netbench.result import codec
from netbench.result.codec import Integer, JsonObject, TextPair

Why = Literal["done", "limit", "interrupted", "lost"]

_ANYWHERE = ("exec", "mount", "export")
FIRST = 1  # a machine's first network namespace
AWAY = "put it back there; where that is gone, `restore --all` says how to forget it"
_NUMBER = "the change's number, from 1"
_BOOT = "the boot's number, from 1"
_HOST = "the host's name in the campaign"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_RELEASE = "the kernel's release, as `uname -r` prints it"
_MACHINE = "which machine the host is, as `machine` tells it"


class Entry(JsonObject):
    """What has the keys of `_Head` on disk beside its fields; `mac`: of older results."""

    head: ClassVar = {"time": str, "kind": str}
    optional: ClassVar = {"machine": str, "netns": Integer, "mac": str}


@dataclass(frozen=True)
class Change(Entry):
    """A change of a host, written before it is made."""

    number: Annotated[Integer, _NUMBER]
    host: Annotated[str, _HOST]
    boot_id: Annotated[str, "the boot of the host that the change is made in"]
    setting: Annotated[str, "the setting's name, without its side"]
    op: Annotated[str, "the worker's operation: `file exec features link ...`"]
    target: Annotated[tuple[str, ...], "the operation's arguments"]
    value: Annotated[str | None, "what is set; in the last entry of what moved: what it reads"]
    before: Annotated[str, "what was read before the change"]
    undo: Annotated[tuple[str, ...], "of a command: the program and arguments that undo it"] = ()
    look: Annotated[
        tuple[str, ...], "of a command: the program and arguments that print `before`"
    ] = ()
    interface: Annotated[str, "of an interface: its index and name"] = ""
    network: Annotated[
        Integer, "the host's network namespace: 1, the machine's first; else its cookie or inode"
    ] = 0
    of_machine: Annotated[str, _MACHINE] = ""

    @property
    def is_kernels(self) -> bool:
        """Whether it is of all network namespaces of its kernel."""
        of = " ".join(self.target)
        return self.op in ("file", "neighbours") and "/" in of and "/net/" not in of

    @property
    def is_anywhere(self) -> bool:
        """Whether it is locked for the whole kernel: it may be seen in every namespace."""
        return self.is_kernels or self.op in _ANYWHERE

    @property
    def is_shared(self) -> bool:
        """Whether it is a sysctl of the first network namespace, which others share or inherit."""
        is_sysctl = "/proc/sys/net" in " ".join(self.target) and self.setting != "tcp_metrics"
        return self.network == FIRST and is_sysctl

    def is_on(self, boot_id: str, network: int, machine: str) -> bool:
        """Whether it may be seen there; what programs have set may be in files."""
        if self.boot_id != boot_id:
            return self.op == "exec" and self.of_machine == machine != ""
        return self.is_anywhere or self.is_shared or self.network in (0, network)

    def is_below(self, other: Change) -> bool:
        """Whether another change of its kernel, made later, may have found what it has set."""
        seen = (
            other.is_on(self.boot_id, self.network, ""),
            self.is_on(other.boot_id, other.network, ""),
        )
        return other.number > self.number and all(seen)

    def __str__(self) -> str:
        if self.op == "neighbours":
            return f"{self.setting} (what moved along)"
        return f"{self.setting} ({self.op} {in_a_line(self.target)})"


def in_a_line(words: Sequence[str]) -> str:
    """The words of a program, without those of several lines."""
    return " ".join("..." if "\n" in word else word for word in words)


@dataclass(frozen=True)
class Restored(Entry):
    """Changes of a host that are undone."""

    numbers: Annotated[tuple[Integer, ...], "the numbers of the changes"]
    host: Annotated[str, _HOST]


@dataclass(frozen=True)
class LeftChanged(Entry):
    """What was not as before once everything was put back, and no setting accounts for."""

    host: Annotated[str, _HOST]
    values: Annotated[Mapping[str, TextPair], "what it is -> before and after"]

    def __str__(self) -> str:
        changes = (f"{name} {was} -> {now}" for name, (was, now) in self.values.items())
        return f"{self.host}: {'; '.join(changes)}"


@dataclass(frozen=True)
class MadeSink(Entry):
    """A file that this campaign made, and may write again."""

    path: Annotated[str, "the file's path on the host"]
    host: Annotated[str, _HOST]
    boot_id: Annotated[str, "the boot that `device` is a number of"]
    device: Annotated[int, "the device that holds the file, as stat(2)"]
    inode: Annotated[int, "its inode there"]


@dataclass(frozen=True)
class Ended(Entry):
    """How a controller ended."""

    why: Annotated[Why, "`done`, `limit`, `interrupted` or `lost`"]


@dataclass(frozen=True)
class OriginalKernel(Entry):
    """What a host ran before it was first booted; written before it is touched."""

    host: Annotated[str, _HOST]
    boot_id: Annotated[str, _BOOT_ID]
    release: Annotated[str, _RELEASE]
    command_line: Annotated[str, "/proc/cmdline"]
    of_machine: Annotated[str, _MACHINE] = ""


@dataclass(frozen=True)
class ModulesShown(Entry):
    """Modules of a copied kernel will be shown below /lib/modules while its initrd is made."""

    host: Annotated[str, _HOST]
    place: Annotated[str, "the folder there, named after the release"]
    mounted: Annotated[bool, "whether it is a mount over a folder, else a link"]
    of_machine: Annotated[str, _MACHINE] = ""


@dataclass(frozen=True)
class ModulesHidden(Entry):
    """They are not shown there any more."""

    host: Annotated[str, _HOST]
    place: Annotated[str, "the folder"]


@dataclass(frozen=True)
class BootBegun(Entry):
    """A boot of a host, written before the host is told to boot."""

    number: Annotated[Integer, _BOOT]
    kernel: Annotated[str, 'the kernel\'s name in the campaign; "": the original one']
    host: Annotated[str, _HOST]
    release: Annotated[str, "the release that is expected"]
    boot_id: Annotated[str, "the boot that the host is in before"]


@dataclass(frozen=True)
class Booted(Entry):
    """A host runs the kernel that it was booted on."""

    number: Annotated[Integer, _BOOT]
    host: Annotated[str, _HOST]
    boot_id: Annotated[str, _BOOT_ID]
    release: Annotated[str, _RELEASE]


@dataclass(frozen=True)
class Back(Entry):
    """A host runs its original kernel and command line again."""

    host: Annotated[str, _HOST]
    boot_id: Annotated[str, _BOOT_ID]


ENTRIES: Mapping[str, type[Entry]] = {
    "change": Change,
    "restored": Restored,
    "left_changed": LeftChanged,
    "made_sink": MadeSink,
    "ended": Ended,
    "original_kernel": OriginalKernel,
    "modules_shown": ModulesShown,
    "modules_hidden": ModulesHidden,
    "boot": BootBegun,
    "booted": Booted,
    "back": Back,
}
"""The types of entries by their `kind`."""
E = TypeVar("E", bound=Entry)
_KINDS = {entry: kind for kind, entry in ENTRIES.items()}


@dataclass(frozen=True)
class _Head:
    """What every entry has."""

    __pydantic_config__: ClassVar = ConfigDict(strict=True, extra="ignore")
    time: Annotated[str, "when it was written: UTC in ISO 8601"]
    kind: Annotated[str, "what the entry says: one of ENTRIES"]
    machine: Annotated[str, "which machine the controller was on"] = ""
    netns: Annotated[Integer, "the inode of the network namespace that it was in"] = 0


@cache
def own_machine() -> str:
    """Which machine this is, without telling its id (machine-id(5) asks for that)."""
    with suppress(OSError):
        if identity := Path("/etc/machine-id").read_text(errors="replace").strip():
            return machine_of(identity)
    return os.uname().nodename


def machine_of(identity: str) -> str:
    """What stands for the machine-id of a machine; "" where it has none."""
    is_known = identity not in ("", "uninitialized")  # machine-id(5)
    return hmac.new(identity.encode(), b"netbench", "sha256").hexdigest()[:16] if is_known else ""


def own_netns() -> int:
    """The inode of this process's network namespace."""
    return os.stat("/proc/self/ns/net").st_ino


def entry_json(entry: Entry) -> dict[str, Any]:
    """An entry as the JSON object of its line, as this process writes it now."""
    here = own_machine(), own_netns()
    head = _Head(now(), _KINDS[type(entry)], *here)
    return {**codec.to_json(head), **codec.to_json(entry)}


def parse_entry(line: bytes, where: object) -> tuple[_Head, Entry]:
    """A line of a journal. Errors: StoreError with `where` (`FILE:LINE`)."""
    what = "an entry of the journal"
    head = codec.read(_Head, line, where, what)
    if head.kind not in ENTRIES:
        raise codec.flawed(where, what, f"unknown kind {head.kind!r}; kinds: {', '.join(ENTRIES)}")
    return head, codec.read(ENTRIES[head.kind], line, where, what)


def entry_end(line: bytes, where: object) -> tuple[str, str] | None:
    """How and when a controller ended, of a line that says so; or None. Errors: parse_entry's."""
    head, entry = parse_entry(line, where)
    return (entry.why, head.time) if isinstance(entry, Ended) else None


class Journal:
    """The journal of a campaign, read and written by any thread. Errors: StoreError.

    Without a path it is kept in memory: for what looks at hosts and changes nothing.
    """

    def __init__(self, path: Path | None = None, copy: Path | None = None, why: str = "") -> None:
        """`copy`: for readers of the result; `why`: nothing that must be put back can be kept."""
        self._path, self._lines = path, JsonLines(path) if path else None
        self._copy = JsonLines(copy) if copy else None
        self._why = why
        self._lost: StoreError | None = None  # why the copy has ended
        self._read: list[tuple[_Head, Entry]] | None = None
        self._lock = Lock()

    def begin(self, copies: bool = True) -> bool:
        """Remove what a kill left of a last line, and bring the copy up to date; False where that
        is another journal's. Errors: OSError. After both, and not `copies`, there is no copy.
        """
        copied, self._copy = self._copy if copies else None, None
        for lines in filter(None, (self._lines, copied)):
            lines.cut_unfinished()
        if self._lines is None or copied is None:
            return True
        opened = open_inside(copied.path, 1, os.O_RDWR)
        with self._lines.path.open("rb") as own, os.fdopen(opened, "rb+") as copy:
            while piece := copy.read(1 << 16):
                if own.read(len(piece)) != piece:
                    return False
            shutil.copyfileobj(own, copy)
        self._copy = copied
        return True

    def write(self, entry: Entry) -> None:
        """Add an entry: it is on the disk when this returns. An interrupt waits, and a copy that
        cannot be written ends, which is an error at the end: it would miss a line in the middle.
        """
        if self._why and not isinstance(entry, MadeSink | Ended | LeftChanged):
            raise PlaceError(self._why)
        with held_back, self._lock:
            known, line = self._known(), to_line(entry_json(entry))
            if self._lines:
                self._lines.append(line, force=True)
            try:
                if self._copy:
                    self._copy.append(line)
            except StoreError as error:
                self._copy, self._lost = None, error
            known.append(parse_entry(line, self._path))
        if self._lost and isinstance(entry, Ended):
            raise self._lost

    def _known(self) -> list[tuple[_Head, Entry]]:
        """All whole entries; read once, since all hosts of a fleet are asked about."""
        if self._read is None:
            lines = self._lines or ()
            self._read = [parse_entry(line, f"{self._path}:{number}") for number, line in lines]
        return self._read

    def entries(self) -> list[Entry]:
        """All whole entries, in order."""
        with self._lock:
            return [entry for _, entry in self._known()]

    def all(self, kind: type[E]) -> list[E]:
        """All whole entries of a kind, in order."""
        return [each for each in self.entries() if isinstance(each, kind)]

    def left(self) -> bool:
        """Whether a host is not known to be as it was."""
        return bool(self.original_kernels() or self.left_changes() or self.modules_shown())

    def here(
        self, host: str, boot_id: str, is_local: bool, network: int = 0, machine: str = ""
    ) -> tuple[list[Change], list[str]]:
        """Changes of a host, as it is now, that are put back from here, the last first; and why not
        the others: those of a controller elsewhere may be of another host of that name.
        """
        with self._lock:
            heads = {e.number: head for head, e in self._known() if type(e) is Change}
        changes, elsewhere = [], []
        for change in self.outstanding(host):
            head = heads[change.number]
            where = ""
            of = change.of_machine if change.of_machine and machine else ""
            is_other = of != machine if of else head.machine not in ("", own_machine())
            if change.boot_id != boot_id and is_other:
                where = f"on the machine {of or head.machine}"
            bound = change.boot_id == boot_id and not change.is_kernels
            if bound and is_local and head.netns not in (0, own_netns()):
                where = f"in the network namespace {head.netns}"
            if bound and network and change.network not in (0, network):
                where = "in a network namespace that may have gone"
            if where:
                elsewhere.append(f"{host}: {change} was changed {where}: {AWAY}")
            else:
                changes.append(change)
        return changes, elsewhere

    def ended(self) -> str:
        """How the last controller ended; "" where none has ended yet."""
        ends = self.all(Ended)
        return ends[-1].why if ends else ""

    def last_number(self, kind: type[Change | BootBegun]) -> int:
        """The number of the last change, or of the last boot that was begun; 0: there is none."""
        return max((each.number for each in self.all(kind)), default=0)

    def outstanding(self, host: str) -> list[Change]:
        """Changes of a host that are not undone, the last first."""
        return [change for change in self.left_changes() if change.host == host]

    def left_changes(self) -> list[Change]:
        """Changes of all hosts that are not undone, the last first."""
        undone = {(each.host, n) for each in self.all(Restored) for n in each.numbers}
        changes = {(each.host, each.number): each for each in self.all(Change)}
        return [change for key, change in reversed(changes.items()) if key not in undone]

    def original_kernels(self) -> dict[str, OriginalKernel]:
        """What hosts ran before they were booted, of those that are not back, by host."""
        by_host: dict[str, OriginalKernel] = {}
        for entry in self.entries():
            if isinstance(entry, OriginalKernel):
                by_host[entry.host] = entry
            elif isinstance(entry, Back):
                by_host.pop(entry.host, None)
        return by_host

    def modules_shown(self, host: str = "") -> list[ModulesShown]:
        """Modules that are still shown below /lib/modules of a host, or of any, or meant to be."""
        shown: dict[tuple[str, str], ModulesShown] = {}
        for entry in self.entries():
            if isinstance(entry, ModulesShown):
                shown[entry.host, entry.place] = entry
            elif isinstance(entry, ModulesHidden):
                shown.pop((entry.host, entry.place), None)
        return [each for each in shown.values() if host in ("", each.host)]

    def boot_of(self, host: str) -> BootBegun | Booted | Back | None:
        """The last entry about boots of a host."""
        boots = [e for e in self.entries() if isinstance(e, BootBegun | Booted | Back)]
        return next((each for each in reversed(boots) if each.host == host), None)

    def left_boot_id(self, host: str) -> str:
        """The boot that a host was in when it was last told to boot; "" where it never was."""
        begun = [each.boot_id for each in self.all(BootBegun) if each.host == host]
        return begun[-1] if begun else ""

    def seen_boot_id(self, host: str) -> str:
        """The boot that a host was last seen in; "" where it never was."""
        seen = [e for e in self.entries() if isinstance(e, _SEEN) and e.host == host]
        return next((each.boot_id for each in reversed(seen) if each.boot_id), "")


_SEEN = Change | OriginalKernel | BootBegun | Booted | Back
