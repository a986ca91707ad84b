"""A mount on the receiver of the folder that holds the sender's file, by NFS: for the methods
`nfs`.

The sender exports the folder to the receivers' data addresses: by exportfs(8) where an NFS server
runs, else by a server of the worker's own (operation `export`). Clients must ask from a port below
1024, and all read as the owner of the file. The receiver mounts it (operation `mount`) at a folder
that is there for nothing else.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from netbench.base.errors import EngineError
from netbench.base.units import parse_size
from netbench.settings.setting import LINK, SWITCH, Operation, Setting, SettingContext

MOUNT = "/run/netbench.nfs"
SERVER = "/run/netbench.nfsd"  # where the operation `export` mounts the kernel's files
# A server that is gone must not hold the receiver for ever; and no options of another mount of the
# same server.
DEFAULTS = "soft,timeo=100,retrans=2,nosharecache"
SIZES = ("rsize", "wsize")
OURS = ("addr", "clientaddr", "ro", "rw", "bg", "fg", "resvport", "noresvport")
_OPTION = re.compile(r"([a-z][a-z0-9_]*)(?:\s*[=:]\s*([A-Za-z0-9._-]+))?")


def path(sender: str, file: str) -> str:
    """Where a receiver finds a file of the sender with this data address."""
    return f"{_mount(sender)}/{PurePosixPath(file).name}"


def _mount(sender: str) -> str:
    return f"{MOUNT}-{sender}"


class Nfs(Setting):
    name = "nfs"
    about = (
        "An NFS mount of the source's folder: exported by the sender, mounted read-only by the"
        " receiver; for the methods nfs."
    )
    levels = "off, on, or options of nfs(5) such as rsize=32K or {rsize: 32K, vers: 4.1}"
    cost = LINK
    whole_kernel = True
    not_ready = "its NFS server refused to open files (grace period after its start)"

    def parse(self, level: str) -> str:
        if level in SWITCH:
            return SWITCH[level]
        matches = [
            _OPTION.fullmatch(part.strip())
            for part in re.split("[,;]", level.removeprefix("{").removesuffix("}"))
        ]
        options = {match[1]: match[2] for match in matches if match}
        if None in matches or len(options) < len(matches):
            raise ValueError(self.levels)
        for name in options.keys() & OURS:
            raise ValueError(f"options of nfs(5) other than {name}, which netbench sets itself")
        return ",".join(
            # as the kernel shows it
            name if value is None else f"{name}={parse_size(value) if name in SIZES else value}"
            for name, value in options.items()
        )

    def level_for(self, level: str, side: str) -> str:
        """A sender's server is the same for all options, and goes on while they change."""
        return "on" if side == "sender" and level != "off" else level

    def read(self, what: str, place: SettingContext) -> str:
        return self.reading(what, "on", place)

    def reading(self, what: str, level: str, place: SettingContext) -> str:
        mounts = [
            _in_words(level, place.read("mount", _mount(sender))) for sender in place.peers.senders
        ]
        if level != "off" and place.peers.receivers and not self._is_exported(place):
            return "off"  # with level off it is of no account what others export
        return next((mount for mount in mounts if mount != level), level)

    def why_not(self, what: str, level: str, place: SettingContext) -> str:
        if level == "off":
            return ""
        if place.peers.receivers:
            self._folder(place)
            self._is_exported(place)
        for sender in place.peers.senders:
            place.read("mount", _mount(sender))
        if place.peers.receivers and set(place.peers.senders) - {place.address}:
            return "a host that others mount from cannot mount from others: use other pairs"
        return ""

    def absent(self, place: SettingContext) -> str:
        reasons, own = [], place.address
        for op, target in (("export", ("/", own, own, "/")), ("mount", (MOUNT,))):
            try:
                place.read(op, *target)
            except EngineError as error:
                reasons.append(str(error))
        return "; ".join(reasons)

    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        if level == "off":
            return []
        operations: list[Operation] = []
        if place.peers.receivers and not self._is_exported(place):
            operations.append(Operation("export", self._export(place), "exported"))
        for sender in place.peers.senders:
            if place.read("mount", _mount(sender)).strip() == "none":
                bracketed = f"[{sender}]" if ":" in sender else sender
                source = f"{bracketed}:{self._folder(place)}"
                value = f"{source}\n{_options(level, sender, place)}"
                operations.append(Operation("mount", (_mount(sender),), value))
        return operations

    def is_ready(self, place: SettingContext) -> bool:
        """A server refuses opens in the grace period after its start (RFC 8881, 8.4.2.1)."""
        folders = (f"{SERVER}-{place.address}", "/proc/fs/nfsd") if place.peers.receivers else ()
        for folder in folders:
            try:
                return place.worker.operate("file", f"{folder}/v4_end_grace")[0].strip() == "Y"
            except EngineError:
                continue  # the server is not this one
        return True

    def _folder(self, place: SettingContext) -> str:
        folders = dict.fromkeys(str(PurePosixPath(file).parent) for file in place.peers.files)
        if len(folders) != 1 or not next(iter(folders)).startswith("/"):
            raise ValueError(
                "nfs exports one folder: write source: {file: PATH} with absolute paths in the"
                " same folder"
            )
        return next(iter(folders))

    def _export(self, place: SettingContext) -> tuple[str, str, str, str]:
        """The target of the operation `export`: who mounts it reads as the owner of the file."""
        clients = " ".join(place.peers.receivers)
        return self._folder(place), place.address, clients, min(place.peers.files)

    def _is_exported(self, place: SettingContext) -> bool:
        return place.read("export", *self._export(place)).strip() == "exported"


def _options(level: str, sender: str, place: SettingContext) -> str:
    options = "" if level == "on" else f",{level}"
    locks = ",nolock" if re.search(r"\bvers=3\b", level) else ""
    return f"vers=4.2,addr={sender},clientaddr={place.address},{DEFAULTS}{locks}{options}"


def _in_words(level: str, mount: str) -> str:
    """What is mounted, in the words of a level: of its options those that it names."""
    if mount.strip() == "none":
        return "off"
    if level in ("on", "off"):
        return "on"
    there = mount.strip().rpartition(" ")[2].split(",")
    options = dict(option.partition("=")[::2] for option in there)

    def shown(name: str) -> str:
        if options.get(name):
            return f"{name}={options[name]}"
        return name if name in options else f"no {name}"

    return ",".join(shown(option.partition("=")[0]) for option in level.split(","))
