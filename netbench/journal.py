"""The journal: journal.jsonl, what must be known after a crash. Each entry is one line with its
`time` and `kind`, forced to the disk before what it announces is done, and signed: its last key is
`mac`.

Every key of an entry is the name of a field here, and every kind is in ENTRIES. A field's metadata
has `about`, as in netbench/record.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict

from netbench import codec
from netbench.codec import Integer, JsonObject, about
from netbench.interrupts import held_back
from netbench.json_lines import JsonLines, now, to_line
from netbench.signing import Doubt, LineSigner, plain

Why = Literal["done", "limit", "interrupted", "lost"]


_NUMBER = about("the change's number, from 1")
_BOOT = about("the boot's number, from 1")
_HOST = about("the host's name in the campaign")
_BOOT_ID = about("/proc/sys/kernel/random/boot_id")
_RELEASE = about("the kernel's release, as `uname -r` prints it")


class _Entry(JsonObject):
    """What has `time` and `kind` on disk beside its fields."""

    head: ClassVar = {"time": str, "kind": str}


@dataclass(frozen=True)
class Change(_Entry):
    """A change of a host, written before it is made."""

    number: Integer = field(metadata=_NUMBER)
    host: str = field(metadata=_HOST)
    boot_id: str = field(metadata=about("the boot of the host that the change is made in"))
    setting: str = field(metadata=about("the setting's name, without its side"))
    op: str = field(metadata=about("the worker's operation: `file exec features link ...`"))
    target: tuple[str, ...] = field(metadata=about("the operation's arguments"))
    value: str | None = field(metadata=about("what is set"))
    before: str = field(metadata=about("what was read before the change"))
    undo: tuple[str, ...] = field(
        default=(), metadata=about("of a command: the program and arguments that undo it")
    )
    look: tuple[str, ...] = field(
        default=(), metadata=about("of a command: the program and arguments that print `before`")
    )

    def __str__(self) -> str:
        return f"{self.setting} ({self.op} {' '.join(self.target)})"


@dataclass(frozen=True)
class Restored(_Entry):
    """Changes of a host that are undone."""

    numbers: tuple[Integer, ...] = field(metadata=about("the numbers of the changes"))
    host: str = field(metadata=_HOST)


@dataclass(frozen=True)
class MadeSink(_Entry):
    """A file that this campaign made, and may write again."""

    path: str = field(metadata=about("the file's path on the host"))
    host: str = field(metadata=_HOST)
    boot_id: str = field(metadata=about("the boot that `device` is a number of"))
    device: int = field(metadata=about("the device that holds the file, as stat(2)"))
    inode: int = field(metadata=about("its inode there"))


@dataclass(frozen=True)
class Ended(_Entry):
    """How a controller ended."""

    why: Why = field(metadata=about("`done`, `limit`, `interrupted` or `lost`"))


@dataclass(frozen=True)
class OriginalKernel(_Entry):
    """What a host ran before it was first booted; written before it is touched."""

    host: str = field(metadata=_HOST)
    boot_id: str = field(metadata=_BOOT_ID)
    release: str = field(metadata=_RELEASE)
    command_line: str = field(metadata=about("/proc/cmdline"))


@dataclass(frozen=True)
class ModulesShown(_Entry):
    """Modules of a copied kernel are shown below /lib/modules while its initrd is made; written
    before.
    """

    host: str = field(metadata=_HOST)
    place: str = field(metadata=about("the folder there, named after the release"))
    mounted: bool = field(metadata=about("whether it is a mount over a folder, else a link"))


@dataclass(frozen=True)
class ModulesHidden(_Entry):
    """They are not shown there any more."""

    host: str = field(metadata=_HOST)
    place: str = field(metadata=about("the folder"))


@dataclass(frozen=True)
class BootBegun(_Entry):
    """A boot of a host, written before the host is told to boot."""

    number: Integer = field(metadata=_BOOT)
    kernel: str = field(metadata=about('the kernel\'s name in the campaign; "": the original one'))
    host: str = field(metadata=_HOST)
    release: str = field(metadata=about("the release that is expected"))
    boot_id: str = field(metadata=about("the boot that the host is in before"))


@dataclass(frozen=True)
class Booted(_Entry):
    """A host runs the kernel that it was booted on."""

    number: Integer = field(metadata=_BOOT)
    host: str = field(metadata=_HOST)
    boot_id: str = field(metadata=_BOOT_ID)
    release: str = field(metadata=_RELEASE)


@dataclass(frozen=True)
class Back(_Entry):
    """A host runs its original kernel and command line again."""

    host: str = field(metadata=_HOST)
    boot_id: str = field(metadata=_BOOT_ID)


Entry = (
    Change
    | Restored
    | MadeSink
    | Ended
    | OriginalKernel
    | ModulesShown
    | ModulesHidden
    | BootBegun
    | Booted
    | Back
)
ENTRIES: Mapping[str, Callable[..., Entry]] = {
    "change": Change,
    "restored": Restored,
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
_KINDS = {entry: kind for kind, entry in ENTRIES.items()}


@dataclass(frozen=True)
class _Head:
    """What every entry has."""

    __pydantic_config__: ClassVar = ConfigDict(strict=True, extra="ignore")
    time: str = field(metadata=about("when it was written: UTC in ISO 8601"))
    kind: str = field(metadata=about("what the entry says: one of ENTRIES"))


def entry_json(entry: Entry, time: str) -> dict[str, Any]:
    """An entry as the JSON object of its line."""
    return {**codec.to_json(_Head(time, _KINDS[type(entry)])), **codec.to_json(entry)}


def parse_entry(line: bytes, where: object) -> Entry:
    """A line of the journal, signed or not. Errors: StoreError with `where` (`FILE:LINE`)."""
    what = "an entry of the journal"
    line = plain(line)
    kind = codec.read(_Head, line, where, what).kind
    if kind not in ENTRIES:
        raise codec.flawed(where, what, f"unknown kind {kind!r}; kinds: {', '.join(ENTRIES)}")
    return codec.read(ENTRIES[kind], line, where, what)


def entry_end(line: bytes, where: object) -> tuple[str, str] | None:
    """How and when a controller ended, of a line that says so; None for others. Errors: as of
    parse_entry.
    """
    entry = parse_entry(line, where)
    if not isinstance(entry, Ended):
        return None
    return entry.why, codec.read(_Head, plain(line), where, "an entry of the journal").time


class Journal:
    """journal.jsonl of a result folder, read and written by any thread. Errors: StoreError.

    Without a path it is kept in memory: for what looks at hosts and changes nothing. Whoever acts
    on it says with `require` which lines count.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._lines = JsonLines(path) if path else None
        self._memory: list[Entry] = []
        self._signer: LineSigner | None = None
        self._place = 1  # of the next line that is signed
        self._signed: list[Entry] = []  # read once, since all hosts of a fleet are asked about
        self._trusting = True
        self._lock = Lock()

    def require(self, signer: LineSigner) -> list[Doubt]:
        """Sign lines from here on, and take only those for entries that are signed. Returns the
        others, which must be entries still.
        """
        self.all_entries()
        lines = self._numbered_lines()
        self._signer, self._trusting = signer, False
        doubts = signer.doubts(self._lines.path, lines) if self._lines else []
        self._place = 1 + len(lines) - sum(doubt.is_of_a_line for doubt in doubts)
        reasons = signer.examine(line for _, line in lines)
        self._signed = [
            parse_entry(line, where)
            for (where, line), why in zip(lines, reasons, strict=True)
            if not why
        ]
        return doubts

    def trust(self) -> None:
        """Take all lines for entries, signed or not."""
        self._trusting = True

    def write(self, entry: Entry) -> None:
        """Add an entry: it is on the disk when this returns. An interrupt waits: between a line and
        its count it would let the next line be signed for the same place.
        """
        if self._lines is None:
            self._memory.append(entry)
            return
        line = to_line(entry_json(entry, now()))
        with held_back, self._lock:
            if self._signer:
                line = self._signer.sign(line, self._place)
            self._lines.append_line(line, force=True)
            if self._signer:
                self._signer.remember(self._place)
                if self._signer.key:
                    self._signed.append(entry)
            self._place += 1

    def entries(self) -> list[Entry]:
        """All whole entries that count, in order. Once signatures are required, the lines of others
        that come later do not.
        """
        return self.all_entries() if self._trusting else list(self._signed)

    def all_entries(self) -> list[Entry]:
        """All whole entries, signed or not."""
        if self._lines is None:
            return list(self._memory)
        return [parse_entry(line, where) for where, line in self._numbered_lines()]

    def _numbered_lines(self) -> list[tuple[str, bytes]]:
        """Whole lines, each with its `FILE:LINE`."""
        lines = self._lines
        return [(lines.where(number), line) for number, line in lines] if lines else []

    def ended(self) -> str:
        """How the last controller ended; "" where none has ended yet."""
        ends = [each.why for each in self.entries() if isinstance(each, Ended)]
        return ends[-1] if ends else ""

    def made_sinks(self) -> list[MadeSink]:
        """Files that this campaign made."""
        return [each for each in self.entries() if isinstance(each, MadeSink)]

    def last_change(self) -> int:
        """The number of the last change; 0 where there is none."""
        return max((each.number for each in self.entries() if type(each) is Change), default=0)

    def outstanding(self, host: str) -> list[Change]:
        """Changes of a host that are not undone, the last first."""
        return outstanding(self.entries(), host)

    def last_boot(self) -> int:
        """The number of the last boot that was begun; 0 where there is none."""
        return max((each.number for each in self.entries() if type(each) is BootBegun), default=0)

    def original_kernels(self) -> dict[str, OriginalKernel]:
        """What hosts ran before they were booted, of those that are not back, by host."""
        found: dict[str, OriginalKernel] = {}
        for entry in self.entries():
            if isinstance(entry, OriginalKernel):
                found[entry.host] = entry
            elif isinstance(entry, Back):
                found.pop(entry.host, None)
        return found

    def modules_shown(self, host: str) -> list[ModulesShown]:
        """Modules that are still shown below /lib/modules of a host, or were meant to be."""
        shown: dict[str, ModulesShown] = {}
        for entry in self.entries():
            if isinstance(entry, ModulesShown) and entry.host == host:
                shown[entry.place] = entry
            elif isinstance(entry, ModulesHidden) and entry.host == host:
                shown.pop(entry.place, None)
        return list(shown.values())

    def boot_of(self, host: str) -> BootBegun | Booted | Back | None:
        """The last entry about boots of a host."""
        return next(
            (
                each
                for each in reversed(self.entries())
                if isinstance(each, BootBegun | Booted | Back) and each.host == host
            ),
            None,
        )

    def left_boot_id(self, host: str) -> str:
        """The boot that a host was in when it was last told to boot; "" where it never was."""
        begun = [e for e in self.entries() if isinstance(e, BootBegun) and e.host == host]
        return begun[-1].boot_id if begun else ""

    def seen_boot_id(self, host: str) -> str:
        """The boot that a host was last seen in; "" where it never was."""
        seen = [e for e in self.entries() if isinstance(e, _SEEN) and e.host == host]
        return next((each.boot_id for each in reversed(seen) if each.boot_id), "")


_SEEN = Change | OriginalKernel | BootBegun | Booted | Back


def outstanding(entries: Iterable[Entry], host: str) -> list[Change]:
    """Changes of a host that a journal does not know undone, the last first."""
    mine: Sequence[Change | Restored] = [
        each for each in entries if isinstance(each, Change | Restored) and each.host == host
    ]
    undone = {number for each in mine if type(each) is Restored for number in each.numbers}
    return [e for e in reversed(mine) if isinstance(e, Change) and e.number not in undone]
