"""What notebooks and programs use: `load()` and `Results`, `transfer()`, and the verbs of the
command line as functions.

Heavy imports wait until they are needed: reading a result needs no engine, running one needs no
plots.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netbench.errors import EngineError, NetbenchError, NotBuiltYet, PlaceError, RequestError
from netbench.model import BootSpec, Campaign, Host, Kernel

if TYPE_CHECKING:
    from netbench.conductor.conductor import Conclusion
    from netbench.conductor.finding import Finding
    from netbench.lab import Lab, LabHost
    from netbench.report.build import Report
    from netbench.report.compared import Compared
    from netbench.results import Results

__all__ = [
    "Results",
    "build_report",
    "check",
    "listing",
    "load",
    "meter",
    "resume",
    "start",
    "transfer",
    "write_report",
]


PLANNED_METERS = ("soak", "perf")


def __getattr__(name: str) -> Any:
    if name == "Results":
        from netbench.results import Results

        return Results
    raise AttributeError(name)


def load(path: Path | str) -> Results:
    """A result folder as Results. Errors: ReportError when it is none; StoreError when it can't be
    read.
    """
    from netbench.results import load as load_results

    return load_results(path)


def check(campaign: Campaign) -> list[Finding]:
    """What stands in a campaign's way, and what will make it noisy. Changes no setting. Errors:
    HostError, WorkerLost.
    """
    from netbench.conductor.check import check
    from netbench.conductor.finding import Finding
    from netbench.conductor.host_load import LOOK_SECONDS
    from netbench.conductor.worker_pool import WorkerPool

    if campaign.unbuilt:
        return [Finding("error", "", what) for what in campaign.unbuilt]
    with made_hosts(campaign) as made, WorkerPool(made) as pool:
        return check(made, pool, look=LOOK_SECONDS)


def start(campaign: Campaign, results: Path) -> Conclusion:
    """Run a campaign, with progress on standard error. Errors: RequestError before anything is run;
    StoreError.
    """
    from netbench.conductor import conductor
    from netbench.conductor.progress import for_terminal

    with made_hosts(campaign) as made:
        return _said(conductor.start(made, results, for_terminal()))


def resume(path: Path) -> Conclusion | None:
    """Go on with a result's campaign; None when it is finished already. Errors: StoreError,
    RequestError.
    """
    from netbench import campaign
    from netbench.conductor import conductor
    from netbench.conductor.progress import for_terminal
    from netbench.store import Store

    progress = for_terminal()
    found = campaign.parse(Store.open(path).campaign_text(), str(path / "campaign.yaml"))
    if conductor.is_finished(path, found):
        progress.say(f"{path} is finished; nothing to do")
        return None
    with made_hosts(found) as made:
        return _said(conductor.resume(path, made, progress))


@contextmanager
def made_hosts(campaign: Campaign) -> Iterator[Campaign]:
    """The campaign with the hosts of its lab, which is there as long as the context. Errors:
    LabError.
    """
    if campaign.lab is None:
        yield campaign
        return
    from netbench import lab

    spec = campaign.lab
    lab.reap()
    kernels = list(campaign.kernels.values())
    if spec.kind != "qemu" and (kernels or campaign.repeat.boots > 1):
        raise RequestError(
            f"hosts of lab: {spec.kind} share this machine's kernel, which is not booted; lab: qemu"
            " has its own kernels"
        )
    made = lab.up(
        spec.kind,
        list(campaign.hosts),
        rate=spec.rate,
        delay=spec.delay,
        name=lab.own_name(),
        kernels=kernels,
    )
    try:
        yield replace(
            campaign,
            hosts={name: _lab_host(host, made, campaign) for name, host in made.hosts.items()},
        )
    finally:
        lab.down(made.name)


def _lab_host(host: LabHost, made: Lab, campaign: Campaign) -> Host:
    ip6 = bool(campaign.cells) and campaign.cells[0].transfer.ip == 6
    way = (
        BootSpec("qemu", made.name, deadline=campaign.hosts[host.name].boot.deadline)
        if made.kind == "qemu"
        else BootSpec()
    )
    return Host(
        host.name,
        host.ssh,
        host.address6 if ip6 else host.address,
        host.interface,
        str(made.ssh_config),
        way,
    )


def restore(path: Path) -> list[str]:
    """Put back what a dead campaign left changed; says what was done. Errors: StoreError,
    HostError, EngineError.
    """
    from netbench import campaign
    from netbench.conductor.restore import restore
    from netbench.store import Store

    store = Store.open(path)
    found = campaign.parse(store.campaign_text(), str(path / "campaign.yaml"))
    if found.lab is None:
        return restore(store, found)
    from netbench import lab

    return [f"hosts of a lab are gone with it: {line}" for line in lab.reap()] or [
        "hosts of a lab are gone with it"
    ]


def _said(conclusion: Conclusion) -> Conclusion:
    from netbench.conductor.progress import Lines

    if conclusion.why == "lost":
        Lines().say(f"netbench: {conclusion.reason}; `resume {conclusion.path}` goes on from here")
    elif conclusion.why == "interrupted":
        Lines().say(f"netbench: interrupted; `resume {conclusion.path}` goes on from here")
    elif conclusion.why == "limit":
        Lines().say(
            f"netbench: the campaign's limit is reached; `resume {conclusion.path}` goes on for as"
            " long again"
        )
    return conclusion


def transfer(*words: str, results: Path | str | None = None, **keys: object) -> Results:
    """One cell without a file: `transfer(send="sendfile", source="/srv/image.iso")`, or as words,
    `transfer("repeat.min=5")`.

    The result is kept below `results`, or in a folder that is thrown away with it: the frames are
    read before. Errors: CampaignError, RequestError; NetbenchError with the reason when the run
    failed.
    """
    from netbench import campaign
    from netbench.conductor import conductor

    with ExitStack() as stack:
        cell = stack.enter_context(
            made_hosts(
                campaign.transfer_cell([*words, *(f"{key}={value}" for key, value in keys.items())])
            )
        )
        folder = results or stack.enter_context(tempfile.TemporaryDirectory(prefix="netbench-"))
        conclusion = conductor.start(cell, Path(folder))
        if conclusion.why == "interrupted":
            raise KeyboardInterrupt
        found = load(conclusion.path)
        if conclusion.exit_code or not (found.runs["status"] == "ok").any():
            reasons = [str(reason) for reason in found.runs["reason"] if reason]
            raise NetbenchError(reasons[-1] if reasons else conclusion.reason)
        _ = found.samples, found.report  # what is read late must be read before the folder goes
    return found


def lab_up(
    kind: str,
    hosts: int,
    rate: str | None = None,
    delay: str | None = None,
    name: str | None = None,
    *,
    kernels: str | None = None,
    disk: bool = False,
) -> Lab:
    """Make hosts on this machine. `rate` and `delay` are words such as 1Gb/s and 5ms, `kernels` of
    guests such as 6.1,6.12.

    Errors: RequestError, LabError.
    """
    from netbench import lab
    from netbench.units import parse_rate, parse_time

    try:
        bits, ns = parse_rate(rate) if rate else None, parse_time(delay) if delay else None
    except ValueError as error:
        raise RequestError(f"lab: {error}") from error
    asked = (
        [Kernel(word, release=word) for word in kernels.split(",")] if kernels is not None else []
    )
    if not all(kernel.name for kernel in asked):
        raise RequestError(f"lab: expected kernels such as 6.1,6.12, got {kernels!r}")
    return lab.up(kind, hosts, rate=bits, delay=ns, name=name, kernels=asked, disk=disk)


def lab_down(name: str | None = None) -> list[dict[str, Any]]:
    """Remove a lab, or all of them: a row for each thing that was removed. Errors: LabError."""
    from netbench import lab

    return [{"removed": line} for line in lab.down(name)]


def lab_status() -> list[dict[str, Any]]:
    """Every lab that is there: a row a host, or a row for one that has none yet."""
    from netbench import lab

    rows: list[dict[str, Any]] = []
    for found in lab.status():
        row = {
            "lab": found.name,
            "kind": found.kind,
            "state": found.state,
            "folder": str(found.folder),
        }
        rows += [
            row
            | {
                "host": h.host.name,
                "address": h.host.address,
                "interface": h.host.interface,
                "sshd": h.sshd,
            }
            for h in found.hosts
        ] or [row]
    return rows


def build_report(path: Path) -> Report:
    """The report of a result folder."""
    from netbench.report.build import build

    return build(path)


def compare(
    result: Path,
    other: Path | None = None,
    *,
    factor: str | None = None,
    baseline: str | None = None,
    margin: str | None = None,
    metrics: Sequence[str] = (),
    gates: Sequence[str] = (),
) -> Compared:
    """Two results, or the levels of a factor of one. `margin` and `gates` are words: 1%,
    throughput<-2%. Errors: RequestError.
    """
    from netbench.analysis.gates import known_metric, parse
    from netbench.report.compared import of_factor, of_two
    from netbench.report.source import Source
    from netbench.units import parse_share

    if other is not None and (factor is not None or baseline is not None):
        raise RequestError(
            "compare A B compares two results; --factor and --baseline are for the levels of one"
        )
    try:
        within = parse_share(margin) if margin is not None else None
        asked, fallible = [known_metric(name) for name in metrics], [parse(gate) for gate in gates]
    except ValueError as error:
        raise RequestError(f"compare: {error}") from error
    if within is not None and not 0 < within < 1:
        raise RequestError(
            f"compare: --margin {margin}: expected more than 0 and less than 100%, such as 1%"
        )
    if other is None:
        return of_factor(Source.of(result), factor, baseline, within, asked, fallible)
    return of_two(Source.of(result), Source.of(other), within, asked, fallible)


def write_report(report: Report, kind: str, file: Path) -> None:
    """Write a report as `html`, `markdown` or `csv`. Errors: PlaceError."""
    from importlib import import_module

    text = import_module(f"netbench.report.{kind}").render(report)
    try:
        if file.parent == report.source.result.path / "report":
            file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PlaceError(f"cannot write {file}: {error.strerror}; choose another place") from error


def listing(what: str, results: Path) -> list[dict[str, Any]]:
    """The rows of `list methods`, `meters`, `settings` or `results`."""
    from netbench.engine.catalogue import local

    if what == "results":
        return _results(results)
    if what == "settings":
        return _settings()
    catalogue = local()
    tables = (
        [("send", catalogue.send), ("receive", catalogue.receive)]
        if what == "methods"
        else [("meter", catalogue.meters)]
    )
    return [
        {
            "kind": kind,
            "name": name,
            "about": named.row.about,
            "flags": sorted(named.row.flags),
            "options": [row.name for row in named.options],
            "counters": [row.name for row in named.counters],
            "why_not": named.row.why,
        }
        for kind, table in tables
        for name, named in table.items()
    ]


def _settings() -> list[dict[str, Any]]:
    """Every setting, with the reason where this machine has no such thing; families of settings
    have none.
    """
    from netbench.conductor.worker_pool import open_channel
    from netbench.engine.worker import Worker
    from netbench.settings.base import SettingContext
    from netbench.settings.catalogue import known

    worker = Worker(open_channel(Host("here")).start_worker(), "here")
    try:
        place = SettingContext("here", worker, "127.0.0.1")
        return [
            {
                "kind": "setting",
                "name": name + ("NAME" if name.endswith(".") else ""),
                "about": setting.about,
                "levels": setting.levels,
                "cost": setting.cost,
                "flags": [],
                "why_not": "" if name.endswith(".") else setting.absent(place),
            }
            for name, setting in known().items()
        ]
    finally:
        worker.close()


def _results(folder: Path) -> list[dict[str, Any]]:
    found = sorted(path.parent for path in folder.glob("*/*/plan.json"))
    return [
        {"name": path.parent.name, "folder": str(path), "runs": _lines(path / "records.jsonl")}
        for path in found
    ]


def _lines(file: Path) -> int | None:
    """Lines of a file, None where it cannot be read."""
    try:
        with file.open("rb") as raw:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: raw.read(1 << 20), b""))
    except OSError:
        return None


def meter(name: str, seconds: float) -> dict[str, Any]:
    """One meter alone on this machine for some seconds: its counters at both edges, per CPU where
    it has such.

    Errors: RequestError for an unknown meter; EngineError.
    """
    from difflib import get_close_matches

    from netbench.conductor import record
    from netbench.conductor.worker_pool import open_channel
    from netbench.engine.binding import Edge
    from netbench.engine.worker import Worker

    channel = open_channel(Host("here"))
    worker = Worker(channel.start_worker(), "here")
    try:
        known = worker.catalogue.meters
        if name in PLANNED_METERS:
            raise NotBuiltYet(f"meter {name} is not built yet")
        usable = [meter for meter, named in known.items() if not named.has("always")]
        if name not in usable:
            near = get_close_matches(name, usable, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(usable)}"
            raise RequestError(f"no meter {name!r} that can run alone; {hint}")
        if known[name].row.why:
            raise EngineError(
                0, 0, name, known[name].row.why, "`list meters` names what can run here"
            )
        if not 0 < seconds <= 86400:
            raise RequestError(f"--seconds {seconds:g}: expected more than 0 and at most a day")
        worker.prepare(
            {"role": "observe", "meters": name, "duration": int(seconds * 1e9), "sample": 0}
        )
        worker.go()
        worker.await_edge(Edge.CLOSE, seconds + 30)
        worker.stop()
        vectors = worker.result(30).result
        side = record.counters(vectors, worker.catalogue)
        cpus = list(record.edge_lines("here", vectors, worker.catalogue))
        ticks = worker.hello.clock_ticks
    finally:
        worker.close()
    units = {row.name: row.unit for row in known[name].counters}
    return {
        "meter": name,
        "clock_ticks": ticks,
        "units": units,
        "time_ns": side.pop("time_ns"),
        "counters": side[name],
        "cpus": cpus,
    }
