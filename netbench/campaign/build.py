"""A campaign's tree -> model.Campaign: what its keys mean together. Each check runs where the keys
that it needs are right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from ipaddress import ip_address
from itertools import combinations
from typing import Any

from netbench.base.names import FACTOR, METRICS, PAIRS_MAX, REQUEST_METRICS, is_taken
from netbench.campaign import cell_checks, cells
from netbench.campaign.control_cells import with_controls
from netbench.campaign.edit import BOUNDS
from netbench.campaign.factors import Level, Reader
from netbench.campaign.fleet import Names, read_links, read_pairs
from netbench.campaign.kernels import kernels_of
from netbench.campaign.matrix import Matrix
from netbench.campaign.messages import listed, nearest
from netbench.campaign.problems import Problems
from netbench.campaign.schema.file import FileKeys, file_model
from netbench.campaign.schema.statistics import RepeatKeys, why_no_metric
from netbench.campaign.schema.transfer import AUTO, transfer_model
from netbench.campaign.settings import is_costly
from netbench.campaign.tools import captured_by, own_tools, resolve_tool
from netbench.campaign.tree import Table, find
from netbench.engine.catalogue import Catalogue
from netbench.model import (
    Campaign,
    Cell,
    Command,
    Compare,
    Factor,
    Host,
    Pair,
    ProfileSpec,
    Repeat,
    SettingLevel,
)

FALLBACK: dict[str, object] = {"netbench": "1", "name": "unnamed"}
HERE = Host("here")
IN_LAB = (Host("snd"), Host("rcv"))


def build(tree: Table, problems: Problems, catalogue: Catalogue, text: str) -> Campaign:
    """The campaign of a tree. Errors: CampaignError with every problem, `problems` included."""
    file = problems.read(file_model(catalogue), FALLBACK)
    base = file.transfer.values()
    hosts = _hosts(file, problems)
    names = Names(hosts, file, problems)
    pairs = read_pairs(file, hosts, names, problems)
    links = read_links(file, names)
    commands = {
        name: Command(keys.apply, keys.read, keys.undo) for name, keys in file.command.items()
    }
    for name in commands:
        taken = is_taken(name) or name.lower() in REQUEST_METRICS
        if taken or not re.fullmatch(FACTOR, name):
            problems.add(("command", name), "expected a name that no column of runs has")
    tools = own_tools(file, problems)
    reader = Reader(
        transfer_model(catalogue), commands, file.kernels, readable(catalogue), tools, problems
    )
    resolve_tool(base, reader)
    factors = reader.factors(file.sweep)
    called = dict.fromkeys(
        (*factors, *(k for one in file.include for k in one), *captured_by(tools))
    )
    cases = Counter(map(str.lower, called))
    if alike := [name for name, times in cases.items() if times > 1]:
        problems.add(("sweep",), f"expected names that differ in more than case: {alike[0]}")
    settings = _settings(file, reader)
    of_side = re.compile("(sender|receiver)[.]")
    used = {of_side.sub("", key) for keys in (settings, file.sweep, *file.include) for key in keys}
    for name in commands.keys() - used:
        problems.warn(("command", name), f"no setting is `{name}`: its programs are not run")
    _bounds(base, factors, problems)
    auto = _auto(base, factors)
    _useless_sets(tree, factors, problems)
    context = cell_checks.Context(catalogue, hosts, pairs, _alone(file, hosts, pairs), settings)
    built = _cells(file, base, factors, reader, context)
    if any(cell.transfer.duration == AUTO for cell in built):
        problems.add(("transfer", "duration"), "expected times in sweep and include, got auto")
    if len(built) * len(pairs) > PAIRS_MAX:
        each = f"{len(built)} cells, each of {len(pairs)} pairs"
        problems.add(("pairs",), f"expected at most {PAIRS_MAX} pairs in all cells, got {each}")
    asking = [cell for cell in built if cell.transfer.asks]
    numbers = [*captured_by(tools), *(REQUEST_METRICS if asking else ())]
    default = "transactions" if asking and len(asking) == len(built) else ""
    repeat = _repeat(file.repeat, numbers, problems, default)
    meters = _meters(file, built, catalogue, problems)
    compare = _compare(file, factors, built, problems)
    if repeat.until == "verdict" and compare is None and problems.clean("compare"):
        problems.add(("repeat", "until"), "expected compare beside until: verdict, got none")
    profile = _profile(file, problems)
    kernels = kernels_of(file, built, repeat, problems)
    problems.stop()
    if compare and file.compare:
        built, compare = with_controls(built, factors, compare, file.compare.control)
    return Campaign(
        name=file.name,
        about=file.about,
        hosts=hosts,
        pairs=pairs,
        factors=tuple(
            Factor(key, tuple(level.word for level in levels), is_costly(key))
            for key, levels in factors.items()
        ),
        cells=built,
        repeat=repeat,
        seed=file.order.seed,
        meters=meters,
        verify=file.verify,
        settings=settings,
        commands=commands,
        tools=tools,
        kernels=kernels,
        limit=file.limit,
        lab=file.lab,
        compare=compare,
        footprint=file.soak.footprint,
        profile=profile,
        overlap=file.overlap,
        text=text,
        source=problems.source,
        warnings=tuple(problems.warnings),
        groups=names.groups,
        links=links,
        auto=auto,
    )


def _hosts(file: FileKeys, problems: Problems) -> dict[str, Host]:
    tree = problems.tree.entries.get("hosts")
    for name, node in tree.entries.items() if isinstance(tree, Table) else ():
        if isinstance(node, Table) and not node.entries and not file.lab:
            message = (
                "expected local or a mapping with ssh, address and interface, got an empty mapping"
            )
            problems.add(("hosts", name), message)
    named = {
        name: Host(name, h.ssh, h.address, h.interface, file.ssh_config, h.boot, h.run_as)
        for name, h in file.hosts.items()
    }
    return named or {host.name: host for host in (IN_LAB if file.lab else (HERE,))}


def _alone(file: FileKeys, hosts: Mapping[str, Host], pairs: tuple[Pair, ...]) -> tuple[str, ...]:
    """Pairs whose ends are one machine. Hosts of a lab have no address until it is up, and are not
    local."""
    local = {name for name, host in hosts.items() if host.local and not file.lab}
    return tuple(
        pair.name
        for pair in pairs
        if pair.sender == pair.receiver or {pair.sender, pair.receiver} <= local
    )


def _settings(file: FileKeys, reader: Reader) -> dict[str, SettingLevel]:
    """The settings that are held all the time; those that are wrong are noted and left out."""
    settings: dict[str, SettingLevel] = {}
    for key, word in file.settings.items():
        if reader.transfers(key) or key == "kernel" or not reader.knows(key):
            reader.no_setting(key, ("settings", key))
        elif level := reader.level(key, word, ("settings", key)):
            settings[key] = level.value
    return settings


def _bounds(
    base: Mapping[str, Any], factors: Mapping[str, list[Level]], problems: Problems
) -> None:
    """A run is bounded by duration, bytes or requests; two at one place are an error."""
    for one, other in combinations(BOUNDS, 2):
        expected = f"expected {one} or {other}"
        if one in base and other in base:
            problems.add(("transfer", other), f"{expected}, got both")
        for key, written in ((one, other), (other, one)):
            if key in factors and written in base and key not in base:
                problems.add(("sweep", key), f"{expected}, got transfer.{written} too")


def _auto(base: dict[str, Any], factors: Collection[str]) -> tuple[str, ...]:
    """The keys of transfer that a pilot finds; `base` gets what stands for them until then."""
    if base.get("duration") != AUTO:
        return ()
    free = {"duration": 10**9} | ({} if "warmup" in {*base, *factors} else {"warmup": 2 * 10**8})
    base.update(free)
    return tuple(free)


def _useless_sets(tree: Table, factors: Mapping[str, list[Level]], problems: Problems) -> None:
    """--set of a key of transfer that every cell takes from the sweep would change nothing."""
    for key in factors:
        line, origin = find(tree, ("transfer", key))
        transfer = tree.entries.get("transfer")
        written = isinstance(transfer, Table) and key in transfer.entries
        if written and not line and origin not in ("", "--quick"):
            problems.add(
                ("transfer", key),
                f"{key} is swept, so this has no effect; expected sweep.{key}=[...]",
            )


def _cells(
    file: FileKeys,
    base: dict[str, Any],
    factors: Mapping[str, list[Level]],
    reader: Reader,
    context: cell_checks.Context,
) -> tuple[Cell, ...]:
    """The cells; impossible ones are noted."""
    problems = reader.problems
    if "ip" not in base and _only_ip6(context):
        base = {**base, "ip": 6}
    combinations = Matrix(factors, reader, problems).cells(file.include, file.exclude)
    built = [
        (combination, cells.build(base, combination, reader, context.catalogue))
        for combination in combinations
    ]
    if problems.clean("hosts", "pairs", "transfer", "settings", "sweep", "include", "exclude"):
        cell_checks.check(base, built, context, problems)
    return tuple(cell for _, cell in built)


def _only_ip6(context: cell_checks.Context) -> bool:
    """Whether every address that the pairs use is of IP version 6, which then is the default."""
    used = {name for pair in context.pairs for name in (pair.sender, pair.receiver)}
    addresses = [
        host.address for name, host in context.hosts.items() if name in used and host.address
    ]
    return bool(addresses) and all(ip_address(address).version == 6 for address in addresses)


def _repeat(
    keys: RepeatKeys, captured: Sequence[str], problems: Problems, default: str = ""
) -> Repeat:
    """`captured`: metrics that tools print, or requests have; `default`: of those, where none is
    written. `min` and `max` left out follow the one that is written
    where it lies past the other's default.
    """
    low = keys.min if keys.min is not None else min(Repeat().min, keys.max or Repeat().min)
    high = keys.max if keys.max is not None else max(Repeat().max, low)
    if low > high:
        problems.add(("repeat", "min"), f"expected at most repeat.max, which is {high}, got {low}")
    for i, metric in enumerate(keys.metrics):
        if (error := why_no_metric(metric, captured)) and problems.clean("tools"):
            context = error.context or {}
            problems.add(("repeat", "metrics", i), context["text"], context["nearest"])
        if metric in keys.metrics[:i]:
            problems.add(
                ("repeat", "metrics", i), f"expected each metric once, got {metric!r} again"
            )
    written = default and "metrics" not in keys.model_fields_set
    metrics = (default,) if written else tuple(keys.metrics)
    return Repeat(low, high, keys.confidence, keys.precision, metrics, keys.boots, keys.until)


def readable(catalogue: Catalogue) -> list[str]:
    """Meters that may be asked for."""
    return [name for name, meter in catalogue.meters.items() if not meter.has("always")]


def _meters(
    file: FileKeys, built: Sequence[Cell], catalogue: Catalogue, problems: Problems
) -> tuple[str, ...]:
    """All meters that cells have, each once; metrics of CPU need one that is asked for."""
    for i, meter in enumerate(file.meters):
        if meter in file.meters[:i]:
            problems.add(("meters", i), f"expected each meter once, got {meter!r} again")
    by_cell = [file.meters if cell.meters is None else cell.meters for cell in built]
    asked = tuple(dict.fromkeys(meter for meters in by_cell for meter in meters))
    _beside_soak(by_cell, catalogue, problems)
    if not problems.clean("meters", "repeat", "sweep", "include"):
        return asked
    usable = [m for m in asked if m == "soak" or catalogue.meters[m].accounts]
    for i, metric in enumerate(file.repeat.metrics):
        name, _, meter = metric.partition(".")
        if (
            name in METRICS
            and name != "throughput"
            and (meter or not usable)
            and meter not in usable
        ):
            choices = (
                listed(usable)
                if usable
                else "a meter that accounts CPU time, and `meters:` has none"
            )
            problems.add(
                ("repeat", "metrics", i),
                f"expected a metric by {choices}, got {metric!r}",
                nearest(meter, usable),
            )
    return asked


def _beside_soak(
    by_cell: Sequence[Sequence[str]], catalogue: Catalogue, problems: Problems
) -> None:
    """Some meters say nothing of a run in which soakers use all CPUs."""
    for meter, row in catalogue.meters.items():
        if row.has("without_soak") and any(
            "soak" in meters and meter in meters for meters in by_cell
        ):
            message = (
                f"{meter} says nothing beside soak, which keeps every CPU busy; expected them in"
                f" cells of their own: sweep: {{meters: [[{meter}], [soak]]}}"
            )
            problems.add(("meters",), message)


def _profile(file: FileKeys, problems: Problems) -> ProfileSpec | None:
    keys = file.profile
    if keys is None:
        return None
    if keys.cells == "changed" and file.compare is None and problems.clean("compare"):
        message = (
            "expected all, since the campaign has no `compare:` that says what changed, got"
            " 'changed'; write `cells: all`, or `compare:` with a factor and its baseline"
        )
        problems.add(("profile", "cells"), message)
    return ProfileSpec(keys.cells, keys.seconds, keys.frequency, keys.runs)


def _compare(
    file: FileKeys, factors: Mapping[str, list[Level]], cells: Sequence[Cell], problems: Problems
) -> Compare | None:
    keys = file.compare
    if keys is None:
        return None
    asked = [level.word for level in factors.get(keys.factor, [])]
    left = dict.fromkeys(c.factors[keys.factor] for c in cells if keys.factor in c.factors)
    levels = [word for word in asked if word in left or not left] or [*left]
    baseline = keys.baseline or next(iter(levels), "")
    if problems.clean("sweep"):
        if keys.factor not in factors:
            swept = listed(factors) if factors else "a swept key, and nothing is swept"
            message = f"expected a factor ({swept}), got {keys.factor!r}"
            problems.add(("compare", "factor"), message, nearest(keys.factor, factors))
        elif baseline not in levels:
            message = f"expected a level of {keys.factor} ({listed(levels)}), got {baseline!r}"
            problems.add(("compare", "baseline"), message, nearest(baseline, levels))
        elif len(levels) < 2:
            problems.add(
                ("compare", "factor"),
                f"expected a factor of two levels or more, got {keys.factor} with one",
            )
    return Compare(keys.factor, baseline, keys.margin)
