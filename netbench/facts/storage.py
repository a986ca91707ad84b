"""Parsers for the mount that holds a file, and for the devices below it. Sources: proc(5),
mount_namespaces(7), the kernel's Documentation/ABI/stable/sysfs-block.
"""

from __future__ import annotations

import re
from collections import Counter

from netbench.facts.fact_text import PRIVATE, fields

DEVICES = r"""
path=$1
[ -e "$path" ] || path=$(dirname -- "$path")
path=$(readlink -f -- "$path")
if [ -b "$path" ]; then
    sys=/sys/class/block/${path##*/}
else
    sys=$(LC_ALL=C df -P -- "$path" | {
        read -r _; read -r source _ _ _ _ point
        while read -r _ _ number _ at _; do
            [ "$at" = "$point" ] && sys=/sys/dev/block/$number
        done </proc/self/mountinfo
        [ -e "$sys" ] || case $source in
        /dev/*) sys=/sys/class/block/$(basename "$(readlink -f -- "$source")") ;;
        esac
        echo "$sys"
    })
fi
[ -n "$sys" ] && [ -e "$sys" ] || { echo "kind: none"; exit 0; }
word() { [ -r "$2" ] && read -r word <"$2" && [ -n "$word" ] && echo "$1: $word"; }
show() {
    echo "depth: $2"
    if [ -e "$1/partition" ]; then
        echo "kind: partition"; ( show "${1%/*}" $(($2 + 1)) ); return
    fi
    word level "$1/md/level"; word uuid "$1/dm/uuid"
    [ -e "$1/loop" ] && echo "kind: loop"
    word model "$1/device/model"
    [ -e "$1/device/driver" ] && echo "driver: $(basename "$(readlink -f "$1/device/driver")")"
    for name in rotational scheduler logical_block_size; do word $name "$1/queue/$name"; done
    for each in "$1"/slaves/*; do
        [ -e "$each" ] && ( show "$(readlink -f "$each")" $(($2 + 1)) )
    done
    return 0
}
show "$(readlink -f "$sys")" 0
"""
"""A script that prints the block device below a file, and those below that one: for each
`depth: N`, and what /sys says of it.
"""
FREE = r"""
path=$1
[ -e "$path" ] || path=$(dirname -- "$path")
path=$(readlink -f -- "$path")
LC_ALL=C df -Pk -- "$path" | { read -r _; read -r _ _ _ free _; echo "$free"; }
"""
"""A script that prints the free KiB of the file system that holds a path."""

MOUNTS = 'readlink -f -- "$1" && exec cat /proc/self/mountinfo'
"""A script that prints a path, resolved, and all mounts."""


def mounted(text: str) -> str:
    """File system, device and options of the mount that holds a path, by the output of MOUNTS.

    Options that identify a person, and sources that are not devices, are left out. Errors:
    ValueError.
    """
    path, _, table = text.partition("\n")
    longest, mount = "", ""
    for line in table.splitlines():
        before, separator, after = line.partition(" - ")
        columns = before.split()
        if not separator or len(columns) < 6:
            continue
        point = _unescaped(columns[4])
        below = path == point or path.startswith(point.rstrip("/") + "/")
        if below and len(point) >= len(longest):  # of two at one point the later hides the earlier
            kind, source, options = (*after.split(), "", "")[:3]
            longest, mount = point, _mount(kind, _unescaped(source), f"{columns[5]},{options}")
    if not mount:
        raise ValueError(f"no mount holds {path}")
    return mount


def _unescaped(word: str) -> str:
    """A path of mountinfo, where spaces and the like are three octal digits (proc(5))."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word)


def _mount(kind: str, source: str, options: str) -> str:
    public = [
        word
        for word in dict.fromkeys(options.split(","))
        if word and not PRIVATE.search(word.partition("=")[0])
    ]
    device = f" on {source}" if source.startswith("/dev/") else ""
    return f"{kind}{device}: {','.join(public)}"


def devices(text: str) -> str:
    """What a file's blocks are on, by the output of DEVICES: `partition of Samsung SSD 980 (solid
    state, scheduler none, sectors of 512)`, `raid1 of 2 x ...`, `no block device`. Names are left
    out: disks may swap theirs from boot to boot. Errors: ValueError.
    """
    parts = re.split(r"^depth: (\d+)$", text.strip(), flags=re.MULTILINE)
    if len(parts) < 3:
        if fields(text).get("kind") == "none":
            return "no block device"
        raise ValueError("no device in it")
    found = [
        (int(depth), fields(rest)) for depth, rest in zip(parts[1::2], parts[2::2], strict=True)
    ]
    return _stack(found, 0)


def _stack(found: list[tuple[int, dict[str, str]]], at: int) -> str:
    """The device at a place, with those that it is made of."""
    depth, device = found[at]
    below = []
    for place in range(at + 1, len(found)):
        if found[place][0] <= depth:
            break
        if found[place][0] == depth + 1:
            below.append(_stack(found, place))
    parts = [f"{n} x {each}" if n > 1 else each for each, n in Counter(below).items()]
    return f"{_kind(device)} of {' and '.join(parts)}" if parts else _disk(device)


def _kind(device: dict[str, str]) -> str:
    """What puts devices together: `raid1`, `LVM`, `CRYPT` (the device mapper's own words)."""
    mapped = device.get("uuid", "").partition("-")[0]
    return device.get("level") or mapped or device.get("kind") or "mapped device"


def _disk(device: dict[str, str]) -> str:
    name = device.get("model") or device.get("kind") or device.get("driver") or "disk"
    media = {"1": "rotating", "0": "solid state"}.get(device.get("rotational", ""), "")
    chosen = re.search(r"\[([^\[\]]+)\]", device.get("scheduler", ""))
    scheduler = chosen[1] if chosen else device.get("scheduler", "")
    sector = device.get("logical_block_size", "")
    details = [
        media,
        f"scheduler {scheduler}" if scheduler else "",
        f"sectors of {sector}" if sector else "",
    ]
    said = ", ".join(filter(None, details))
    return f"{name} ({said})" if said else name


def free_space(text: str) -> str:
    """Free KiB as a size. Errors: ValueError."""
    return f"{int(text) / 2**20:.1f} GiB"
