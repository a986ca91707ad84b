"""`lab`: hosts that are made on this machine."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from netbench.base.errors import RequestError
from netbench.base.units import parse_rate, parse_time
from netbench.cli.output import fold, say, say_json, table
from netbench.cli.verb import add_json

if TYPE_CHECKING:
    from netbench.lab import Lab

HEAD = ("lab", "state", "host", "server", "address", "interface")


def run(options: argparse.Namespace) -> int:
    from netbench import lab

    if options.action == "up":
        started = _up(options)
        say(json.dumps(started.block(), indent=1) if options.json else started.yaml())
        return 0
    if options.action == "down":
        rows: list[dict[str, Any]] = [{"removed": line} for line in _down(options)]
    else:
        rows = [*lab.status()]
    left = [] if rows else [*dict.fromkeys(row["lab"] for row in lab.status())]
    if options.json:
        say_json(rows)
    elif left:
        where = f"`lab down --name {left[0]}` removes one all the same"
        say(fold(f"those of campaigns that run are left: {', '.join(left)}; {where}"))
    else:
        say(_text(rows))
    return 0


def _down(options: argparse.Namespace) -> list[str]:
    """Remove what the options name; without a name, the lab that `up` makes without one, where it
    is the only one. Errors: RequestError, LabError.
    """
    from netbench import lab
    from netbench.lab.state import DEFAULT_NAME

    if options.all and options.name is not None:
        raise RequestError("lab down: expected --name or --all, got both")
    others = [name for name in lab.unused() if name != DEFAULT_NAME]
    if options.name is None and not options.all and others:
        raise RequestError(
            f"lab down: there are {', '.join(lab.unused())}, perhaps of other users; remove one by"
            f" `lab down --name {others[0]}`, or all of them by `lab down --all`"
        )
    return lab.down(options.name)


def _up(options: argparse.Namespace) -> Lab:
    """Make the lab that the options ask for. Errors: RequestError, LabError."""
    from netbench import lab
    from netbench.model import Kernel

    try:
        rate = parse_rate(options.rate) if options.rate else None
        delay = parse_time(options.delay) if options.delay else None
    except ValueError as error:
        raise RequestError(f"lab: {error}") from error
    words = [] if options.kernels is None else options.kernels.split(",")
    if not all(words):
        raise RequestError(f"lab: expected kernels such as 6.1,6.12, got {options.kernels!r}")
    return lab.up(
        options.kind,
        options.hosts,
        rate=rate,
        delay=delay,
        name=options.name,
        kernels=[Kernel(word, release=word) for word in words],
        disk=options.disk,
    )


def _text(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "there is no lab"
    if "removed" in rows[0]:
        return "\n".join(fold(f"removed {row['removed']}") for row in rows)
    consoles = (
        fold(f"{row['lab']} {row['host']}: its console's last line: {row['console']}")
        for row in rows
        if row.get("console")
    )
    hosts = ([str(row.get(key, "")) for key in HEAD] for row in rows)
    return "\n".join((table([HEAD, *hosts]), *consoles))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    parser.add_argument("action", choices=("up", "down", "status"))
    parser.add_argument(
        "kind",
        nargs="?",
        default="netns",
        metavar="KIND",
        help="what `up` makes: netns (network namespaces, the default) or qemu (guests)",
    )
    parser.add_argument(
        "--hosts", type=int, default=2, metavar="N", help="number of hosts (default: 2)"
    )
    parser.add_argument("--rate", metavar="R", help="rate of the data link, such as 1Gb/s")
    parser.add_argument("--delay", metavar="T", help="delay of the data link each way, such as 5ms")
    parser.add_argument("--name", metavar="NAME", help="the lab's name, where there are several")
    parser.add_argument(
        "--all", action="store_true", help="`down`: all labs, others' too, not of running campaigns"
    )
    parser.add_argument(
        "--kernels",
        metavar="A,B",
        help="Debian kernels of guests: series or releases, such as 6.1,6.12; guests start with"
        " the first",
    )
    parser.add_argument(
        "--disk", action="store_true", help="give each guest a disk with these kernels in /boot"
    )
