"""The parser for the mount that holds a file. Sources: proc(5), mount_namespaces(7)."""

from __future__ import annotations

import re

from netbench.facts.fact_text import PRIVATE

MOUNTS = 'readlink -f -- "$1" && exec cat /proc/self/mountinfo'
"""A script that prints a path, resolved, and all mounts."""


def mounted(text: str) -> str:
    """File system, device and options of the mount that holds a path, by the output of MOUNTS.

    Options that may identify a person (folders too, of an overlay), and sources that are not
    devices, are left out. Errors: ValueError.
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
        if word and "/" not in word and not PRIVATE.search(word.partition("=")[0])
    ]
    device = f" on {source}" if source.startswith("/dev/") else ""
    return f"{kind}{device}: {','.join(public)}"
