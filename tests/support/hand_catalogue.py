"""A catalogue written by hand, so that tests of the campaign file need no engine."""

from __future__ import annotations

from netbench.engine.catalogue import Catalogue, Row

METHODS = {
    "send": {
        "null": "no_data",
        "write": "delivers from_memory from_zero",
        "readwrite": "delivers from_file",
        "sendfile": "delivers from_file whole_file",
        "splice": "delivers from_file from_zero",
        "mmap": "delivers from_file",
        "request": "requests from_memory from_zero",
    },
    "receive": {
        "null": "no_data",
        "read": "delivers to_discard to_file",
        "trunc": "to_discard",
        "splice": "to_discard to_file",
        "request": "requests to_discard",
    },
    "meter": {
        "rusage": "",
        "procstat": "host_wide",
        "soak": "host_wide",
        "tcp": "always",
        "flow": "always",
        "perf": "host_wide by_helper",
    },
}
OPTIONS = {
    "pipe": ("size", 4096, 2**20),
    "align": ("size", 0, 4095),
    "send_buffer": ("size", 0, 2**30),
    "receive_buffer": ("size", 0, 2**28),
}


def catalogue() -> Catalogue:
    """Methods and meters as METHODS says; send method splice has `pipe`; `align` is bounded."""
    rows: list[Row] = []

    def add(kind: str, name: str, flags: str = "", owner: Row | None = None) -> Row:
        type_, low, high = OPTIONS.get(name, ("count", 0, 0))
        mine = (owner.id, owner.name) if owner else (0xFFFF, "")
        told = (frozenset(flags.split()), name, f"what {name} does", (), "")
        row = Row(len(rows), *mine, kind, type_, "", "run", *told, low, high)
        rows.append(row)
        return row

    for kind, names in METHODS.items():
        for name, flags in names.items():
            row = add(kind, name, flags)
            if (kind, name) == ("send", "splice"):
                add("option", "pipe", "user", row)
            if (kind, name) == ("send", "request"):
                add("option", "request_rate", "", row)
            if name in ("rusage", "procstat"):
                add("counter", "time", "cpu_time", row)
    for name in ("align", "send_buffer", "receive_buffer"):
        add("option", name, "user")
    return Catalogue.of(rows)
