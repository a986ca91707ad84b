"""`ab`: before and after a change, as a campaign whose blocks have both."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from dataclasses import replace

from netbench import api
from netbench.base.errors import RequestError
from netbench.cli.run import say_summary
from netbench.cli.verb import add_campaign, add_plain, add_results, load_campaign

FACTOR, BEFORE, AFTER = "change", "before", "after"
MARK = "netbench_mark={}/netbench.change-{}-$(stat -Lc %i /proc/self/ns/net)"
"""Names the mark: a boot takes it away with a sysctl, and leaves it with files. Hosts that are
network namespaces of one machine have one each; the first has the same number in each boot.
"""
_SYSCTL = re.compile(r"sysctl(?: -[wq]+)* ([\w./-]+)=([\w.-]+|'[^']*'|\"[\w. -]*\")", re.ASCII)
_TAKES_ALONG = re.compile(
    r"\bipv6[./]+conf[./]+(all[./]|.*[./](disable_ipv6|addr_gen_mode|forwarding)\Z)"
    r"|\bipv4[./]+(ip_forward|conf[./]+all[./]+forwarding)\Z|\bvm[./]+dirty_(background_)?ratio\Z"
)


def run(options: argparse.Namespace) -> int:
    side = f"{options.side}." if options.side else ""
    options.sets += [f"{path}={json.dumps(value)}" for path, value in _keys(options, side)]
    campaign = load_campaign(options)
    about = campaign.about or f"Before and after `{options.change}`."
    conclusion = api.start(replace(campaign, about=about), options.results, plain=options.plain)
    say_summary(conclusion.path)
    return conclusion.exit_code


def _keys(options: argparse.Namespace, side: str) -> list[tuple[str, object]]:
    """What the campaign gets beside what its file says: a setting of its own whose level is known
    by a mark on the host. Errors: RequestError.
    """
    digest = hashlib.sha256(f"{options.change}\0{options.undo}".encode()).hexdigest()[:16]
    place = "/run" if options.undo is None else "/var/lib"
    mark = MARK.format(place, digest)
    save, undo, tried, held = f"echo {AFTER}", options.undo, "", "true"
    if undo is None:
        found = _SYSCTL.fullmatch(" ".join(options.change.split()))
        if not found:
            raise RequestError(
                f"ab: nothing is known that undoes `{options.change}`; give it with --undo"
            )
        if _TAKES_ALONG.search(found[1]):
            raise RequestError(
                f"ab: {found[1]} may take others, addresses or routes along, which writing it again"
                f" does not bring back; sweep the setting sysctl.{found[1]}, which holds them too"
            )
        save, undo = f"sysctl -n {found[1]}", f'sysctl -w {found[1]}="$(cat "$netbench_mark")"'
        other = f"give --undo, or sweep the setting sysctl.{found[1]}"
        why = f'echo "{found[1]} cannot be set to $netbench_was again: {other}" >&2'
        odd = f"{found[1]} read $netbench_was before, and reads $netbench_is"
        held = (  # white space between numbers is of no account, as for settings
            f"set -f; netbench_asked={found[2]}; netbench_is=$(sysctl -n {found[1]})"
            ' && [ "$(echo $netbench_is)" = "$(echo $netbench_asked)" ]'
            ' && [ "$(echo $netbench_is)" != "$(echo $netbench_was)" ]'
            f' || {{ echo "{odd}: write a value that it takes and does not have" >&2; exit 1; }}'
        )
        tried = f'{{ sysctl -qw {found[1]}="$netbench_was" || {{ {why}; exit 1; }}; }} && '
    written = (
        'printf %s "$netbench_was" > "$netbench_mark.new" && sync "$netbench_mark.new"'
        ' && mv "$netbench_mark.new" "$netbench_mark"'
    )
    apply = f"netbench_was=$({save}) && {tried}mkdir -p {place} && {written}"
    read = f'if [ -e "$netbench_mark" ]; then echo {AFTER}; else echo {BEFORE}; fi'
    left = 'echo "(where nothing is left to undo: rm $netbench_mark)" >&2; exit 1'
    back = (
        f'[ ! -e "$netbench_mark" ] || {{ {{ {undo}\n}} && rm "$netbench_mark" || {{ {left}; }}; }}'
    )
    apply += f" && {{ ( {options.change}\n) && ( {held} ) || {{ ( {back}; ); exit 1; }}; }}"
    acts = {"apply": apply, "read": read, "undo": back}
    command = {act: ["sh", "-c", f"{mark}; {line}"] for act, line in acts.items()}
    earlier = "echo 'an earlier ab has left its change: restore it first' >&2; exit 1"
    command["apply"] = ["sh", "-c", f'[ "$0" = {AFTER} ] || {{ {earlier}; }}; {mark}; {apply}']
    command["apply"].append("{level}")
    return [
        (f"command.{FACTOR}", command),
        (f"sweep.{side}{FACTOR}", [BEFORE, AFTER]),
        ("compare", {"factor": f"{side}{FACTOR}", "baseline": BEFORE}),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_campaign(parser)
    parser.add_argument(
        "--change",
        required=True,
        metavar="CMD",
        help="a line of the shell that makes the change, as root on the hosts",
    )
    parser.add_argument(
        "--undo",
        metavar="CMD",
        help="the one that takes it back; not needed for `sysctl -w NAME=VALUE`",
    )
    parser.add_argument(
        "--side", choices=("sender", "receiver"), help="on this host alone (default: on both)"
    )
    add_results(parser, "where result folders go")
    add_plain(parser)
