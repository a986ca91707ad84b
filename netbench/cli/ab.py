"""`ab`: before and after a change, as a campaign whose blocks have both."""

from __future__ import annotations

import argparse
import hashlib
import json
import re

from netbench import api
from netbench.base.errors import RequestError
from netbench.base.names import AS_IS
from netbench.cli.run import say_summary
from netbench.cli.verb import add_campaign, add_plain, add_results, load_campaign

FACTOR, BEFORE, AFTER, LEFT = "change", "before", "after", "left by an earlier boot"
PLACE, BOOT = "/var/lib", "/proc/sys/kernel/random/boot_id"  # what may outlive a boot; which it is
TAG = "/proc/sys/net/ipv4/conf/lo/tag"
"""A number without any meaning to the kernel (Documentation/networking/ip-sysctl.rst): the mark of
a network namespace beside that of the machine, with which it goes.
"""
MARK = f"""\
if [ /proc/self/ns/net -ef /proc/1/ns/net ]; then
netbench_mark={PLACE}/netbench.change-{{0}} netbench_none="rm $netbench_mark"
netbench_free="[ ! -e $netbench_mark ]" netbench_now="grep -qsxFf {BOOT} $netbench_mark"
netbench_write="mkdir -p {PLACE} && (echo {{0}}; cat {BOOT}) > $netbench_mark.new"
netbench_write="$netbench_write && sync $netbench_mark.new && mv $netbench_mark.new $netbench_mark"
else
netbench_mark={TAG} netbench_none="echo 0 > {TAG}" netbench_write="echo {{0}} > {TAG}"
netbench_free="grep -qx 0 {TAG}" netbench_now=true
fi"""
"""Names the mark, which holds a number of the change, and its boot; and what is done with it."""
_SYSCTL = re.compile(r"sysctl(?: -[wq]+)* ([\w./-]+)=([\w.-]+|'[^']*'|\"[\w. -]*\")", re.ASCII)


def run(options: argparse.Namespace) -> int:
    side = f"{options.side}." if options.side else ""
    options.sets += [f"{path}={json.dumps(value)}" for path, value in _keys(options, side)]
    campaign = load_campaign(options)
    about = campaign.about or f"Before and after `{options.change}`."
    conclusion = api.start(campaign._replace(about=about), options.results, plain=options.plain)
    say_summary(conclusion.path)
    refused = "refused" in set(api.load(conclusion.path).cells["status"])  # nothing to compare
    return conclusion.exit_code or int(refused)


def _keys(options: argparse.Namespace, side: str) -> list[tuple[str, object]]:
    """What the campaign gets beside what its file says: the sysctl as a setting, or a setting of
    its own whose level is known by a mark on the host. Errors: RequestError.
    """
    if options.undo is None:
        sysctl = _SYSCTL.fullmatch(" ".join(options.change.split()))
        if not sysctl:
            raise RequestError(
                f"ab: nothing is known that undoes `{options.change}`; give it with --undo"
            )
        key = f"{side}sysctl.{sysctl[1]}"
        return [
            (f"sweep.{key}", [AS_IS, sysctl[2].strip("'\"")]),
            ("compare.factor", key),
            ("compare.baseline", AS_IS),
        ]
    number = int(hashlib.sha256(f"{options.change}\0{options.undo}".encode()).hexdigest()[:7], 16)
    mark, is_there = MARK.format(number), f'grep -qsx {number} "$netbench_mark"'
    read = f'{is_there} || {{ echo {BEFORE}; exit; }}; eval "$netbench_now" && echo {AFTER}'
    read += f" || echo {LEFT}"
    left = 'echo "(where nothing is left to undo: $netbench_none)" >&2; exit 1'
    undo = f'sh -c "$1" && eval "$netbench_none" || {{ {left}; }}'
    failed = 'eval "$netbench_none"; echo "(--undo was not run: what it did stays)" >&2; exit 1'
    apply = f'eval "$netbench_write" && {{ sh -c "$1" || {{ {failed}; }}; }}'
    earlier = 'echo "an earlier ab has left its change: restore it ($netbench_mark)" >&2; exit 1'
    may = f'[ "$0" = {AFTER} ] && eval "$netbench_free" || {{ {earlier}; }}'
    acts = {
        "apply": [f"{may}; {apply}", "{level}", options.change],
        "read": [read],
        "undo": [f"! {is_there} || {{ {undo}; }}", "undo", options.undo],
    }
    command = {act: ["sh", "-c", f"{mark}\n{line}", *words] for act, (line, *words) in acts.items()}
    return [
        (f"command.{FACTOR}", command),
        (f"sweep.{side}{FACTOR}", [BEFORE, AFTER]),
        ("compare.factor", f"{side}{FACTOR}"),
        ("compare.baseline", BEFORE),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_campaign(parser)
    parser.add_argument(
        "--change", required=True, metavar="CMD", help="a line of the shell, as root on the hosts"
    )
    parser.add_argument(
        "--undo", metavar="CMD", help="takes it back; not needed for `sysctl -w NAME=VALUE`"
    )
    parser.add_argument(
        "--side", choices=("sender", "receiver"), help="on this host alone (default: on both)"
    )
    add_results(parser, "where result folders go")
    add_plain(parser)
