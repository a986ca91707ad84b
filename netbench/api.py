"""What notebooks and programs import: `load()` and `Results`, `transfer()`, and campaigns from
`check` to `compare` as functions.

Heavy imports wait until they are needed: reading a result needs no engine, running one needs no
plots.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from netbench.base.errors import NetbenchError, ReportError, RequestError, StoreError, unreadable
from netbench.base.names import PROGRAM, shell_word
from netbench.base.whole_file import replacing
from netbench.model import Campaign

if TYPE_CHECKING:
    from netbench.fleet.dask_engine import Parted
    from netbench.fleet.merge import Merged
    from netbench.report.build import Report
    from netbench.report.compared import Compared
    from netbench.result.campaign_state import CampaignState
    from netbench.results import Results
    from netbench.run.conductor import Conclusion
    from netbench.run.finding import Finding
    from netbench.run.transfer import Second
    from netbench.run.worker_pool import ChannelFactory
    from netbench.tables.database import Answer

RESULTS = Path("results")  # where result folders are, unless another place is named
LATEST = "latest"
_SCHEME_OR_PORT = re.compile(r"^ssh://|:[0-9]+$")  # of a destination, beside user and host
_NAMED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:~(?P<back>[0-9]{1,6}))?")


def find_result(word: Path | str, results: Path | str = RESULTS) -> Path:
    """The result that a word names: the path that it is; or below `results`, `latest` the newest
    and NAME the newest of that campaign, `latest~1` and `NAME~1` the one before. A word that names
    none is taken for a path. Errors: RequestError where there are not as many.
    """
    if Path(word).suffix in (".yaml", ".yml") and Path(word).is_file():
        raise RequestError(
            f"{word} is a campaign file; `run` makes a result of it, which its campaign's name"
            " names"
        )
    named = _NAMED.fullmatch(str(word))
    if named is None or Path(word).exists():
        return Path(word)
    from netbench.read.overview import folders  # most verbs start without it

    name, back = named["name"], int(named["back"] or 0)
    paths = folders(Path(results))
    if name != LATEST:
        paths = [path for path in paths if path.parent.name == name]
    if back < len(paths):
        return paths[back]
    if not paths and name != LATEST:
        return Path(word)
    raise RequestError(
        f"{word}: no results below {results}; name a result folder, or where they are with"
        " --results DIR"
        if not paths
        else f"{word}: there are {len(paths)} of these results below {results}; the oldest is"
        f" {name}~{len(paths) - 1}"
    )


def load(path: Path | str) -> Results:
    """A result as Results, by its folder or name, as find_result takes it. Errors: RequestError,
    ReportError when it is none; StoreError when it can't be read.
    """
    from netbench.report.source import Source
    from netbench.results import Results

    return Results(Source.of(find_result(path)))


def init(name: str, file: Path) -> None:
    """Write a template as a new campaign file. Errors: RequestError, PlaceError."""
    from netbench.base.whole_file import write_new
    from netbench.templates import template

    write_new(template(name).text, file, "init")


def check(campaign: Campaign) -> list[Finding]:
    """What prevents a campaign from running, and what will make it noisy. Changes no setting, and
    builds kernels from git. Errors: HostError, RequestError, WorkerLost.
    """
    from netbench.run.check import check
    from netbench.run.host_load import LOOK_SECONDS
    from netbench.run.progress import Lines
    from netbench.run.worker_pool import WorkerPool

    with _made(campaign, Lines().say) as ready, WorkerPool(ready) as pool:
        return check(ready, pool, look=LOOK_SECONDS, alone=True)


def start(
    campaign: Campaign, results: Path, jobs: int | None = None, plain: bool = False
) -> Conclusion:
    """Run a campaign, with progress on standard error: a view on a terminal, unless `plain`.
    Kernels from git are built first, `jobs` compilers at a time (None: one for each CPU). Errors:
    RequestError before anything is run; StoreError.
    """
    from netbench.live.terminal_view import for_terminal
    from netbench.run import conductor

    progress = for_terminal(plain)
    with _made(_pinned(campaign), progress.say, jobs) as ready:
        return _announced(conductor.start(ready, results, progress))


def part(campaign: Campaign, word: str) -> Campaign:
    """The part of a campaign's pairs that a word such as 2/4 names. Errors: RequestError."""
    from netbench.fleet.parts import parse_part, part_of

    try:
        return part_of(campaign, *parse_part(word))
    except ValueError as error:
        raise RequestError(f"argument --part: {error}") from error


def start_parts(
    campaign: Campaign,
    results: Path,
    scheduler: str | None = None,
    parts: int | None = None,
    insecure: bool = False,
) -> Parted:
    """Run a campaign in parts on Dask and merge them, with progress as lines on standard error.
    `insecure`: also on a scheduler without TLS. Errors: RequestError, PlaceError, StoreError.
    """
    from netbench.fleet.dask_engine import run
    from netbench.run.progress import Lines

    return run(_pinned(campaign), results, Lines(), scheduler, parts, insecure)


def resume(path: Path, plain: bool = False) -> Conclusion:
    """Go on with a result's campaign, with progress as of `start`; one that has all runs, and that
    its controller has ended, is left. Errors: StoreError, RequestError.
    """
    from netbench import campaign
    from netbench.base.ownership import refuse_foreign
    from netbench.fleet.parts import as_planned
    from netbench.live.terminal_view import for_terminal
    from netbench.plan.plan import Plan
    from netbench.result.store import Store
    from netbench.run import conductor
    from netbench.run.run_history import refuse_another

    progress = for_terminal(plain)
    store = Store.open(path)
    refuse_foreign(path.resolve())
    file = str(path / "campaign.yaml")
    whole = campaign.parse(store.campaign_text(), file, inventories=False)
    begun = as_planned(whole, store.plan())
    if store.journal.ended() == "done" and (ledger := conductor.finished(path, begun)):
        progress.say(f"{path} is finished; nothing to do")
        return conductor.Conclusion(path, "done", ledger.failed)
    refuse_another(store, Plan(begun))  # before its lab is made
    with _made(begun, progress.say) as ready:
        return _announced(conductor.resume(path, ready, progress))


def _is_built(campaign: Campaign) -> bool:
    """Whether it has kernels from git."""
    return any(kernel.git for kernel in campaign.kernels.values())


def _pinned(campaign: Campaign) -> Campaign:
    """With commits in place of revisions. Errors: RequestError."""
    if not _is_built(campaign):
        return campaign
    from netbench.kernels.built import pinned

    return pinned(campaign)


@contextmanager
def _made(
    campaign: Campaign, say: Callable[[str], None], jobs: int | None = None
) -> Iterator[Campaign]:
    """The campaign with what is made for it: kernels from git, and hosts of its lab, which is up as
    long as the context. A lab that cannot be made is told before kernels are built for it.
    """
    with ExitStack() as stack:
        if _is_built(campaign):
            from netbench.kernels.built import with_built_kernels
            from netbench.lab import require_lab

            require_lab(campaign)
            campaign = with_built_kernels(campaign, say, jobs)
        if campaign.lab is not None:
            from netbench.lab import campaign_hosts

            campaign = stack.enter_context(campaign_hosts(campaign))
        yield campaign


def merge(paths: Sequence[Path], folder: Path) -> Merged:
    """Join the parts of a campaign into one result: `folder`, or below it where it is there
    already. Errors: RequestError, ReportError, StoreError, PlaceError.
    """
    from netbench.fleet.merge import merge

    return merge(paths, folder)


def restore(result: Path) -> list[str]:
    """Put back what a dead campaign of this account left changed: a line for each thing. `result`:
    its folder, or its ID where that is gone. Errors: RequestError where this account has no state
    of it, with what the result's copy of the journal says; StoreError, HostError, EngineError.
    """
    from netbench import lab
    from netbench.result import campaign_state
    from netbench.run.restore import restore, restore_here

    state = campaign_state.named(str(result)) or campaign_state.find(result)
    if state is None:
        return _shown_only(result)
    dead = _as_begun(state.read("campaign.yaml"), state.path / "campaign.yaml")
    if dead.lab is None:
        return restore(state, dead)
    done = [f"removed {line}" for line in lab.reap()]
    done += restore_here(state, dead)
    if done:
        return done
    up = ", ".join(dict.fromkeys(row["lab"] for row in lab.status()))
    return [f"nothing to restore; labs that are up, by `lab status`: {up or 'none'}"]


def left_changed() -> Mapping[str, list[str]]:
    """What this account has left changed on any host: by the ID of a campaign its name and result,
    then a line for each thing, or why it cannot be read. Of a lab's hosts what they have changed of
    this machine. What began last first.
    """
    from netbench.result import campaign_state

    left = dict[str, list[str]]()
    for folder in reversed(campaign_state.folders()):
        try:
            lines = _left_by(campaign_state.CampaignState(folder))
        except (NetbenchError, OSError) as error:  # the others can still be put back
            lines = [f"cannot be read: {error}"]
        if lines:
            left[folder.name] = lines
    return left


def _left_by(state: CampaignState) -> list[str]:
    from netbench.base.locked import is_locked
    from netbench.result.journal import Journal
    from netbench.run.restore import restore_plan

    journal = Journal(state.journal)
    if not journal.left():
        return []
    dead = _as_begun(state.read("campaign.yaml"), state.path / "campaign.yaml")
    running = " (running)" if is_locked(state.journal) else ""
    lines = restore_plan(dead, journal)
    if running and not lines:  # its lab is up
        return []
    return [f"{dead.name} {state.result}{running}", *(lines or ["what is gone with its lab"])]


def _shown_only(result: Path) -> list[str]:
    """What a result without state says: nothing is left. Errors: RequestError with what is."""
    from netbench.base.json_lines import read_whole
    from netbench.result.journal import Journal
    from netbench.result.store import no_result
    from netbench.run.restore import restore_plan

    file = result / "campaign.yaml"
    if not file.is_file():
        raise no_result(result)
    other = _as_begun(read_whole(file), file)
    lines = restore_plan(other, Journal(result / "journal.jsonl"))
    if not lines:
        return [f"nothing is left to put back, as {result} says"]
    raise RequestError(
        f"{result} says that this is left changed:\n" + "\n".join(lines) + "\nNothing of it is put"
        " back: this account did not begin the campaign here, or its state was removed, and others"
        " may have written what is above. Look, and put back by hand what is right"
    )


def _as_begun(data: bytes, file: Path) -> Campaign:
    """The campaign of a result or of its state, which holds all of it. Errors: CampaignError."""
    from netbench import campaign
    from netbench.campaign.yaml_tree import decode

    return campaign.parse(decode(data, str(file)), str(file), inventories=False)


def _announced(conclusion: Conclusion) -> Conclusion:
    """Print why a campaign ended early, and how to go on."""
    from netbench.run.progress import Lines

    whys = {"lost": conclusion.reason, "interrupted": "interrupted"}
    whys["limit"] = "the campaign reached its limit"
    if conclusion.why in whys:
        again = " for the same time again" if conclusion.why == "limit" else ""
        advice = f"`resume {shell_word(conclusion.path)}` continues it{again}"
        Lines().say(f"netbench: {whys[conclusion.why]}; {advice}")
    return conclusion


def run(
    campaign: Path | str | Mapping[str, object],
    *,
    results: Path | str = RESULTS,
    sets: Sequence[str] = (),
    quick: bool = False,
) -> Results:
    """Run a campaign, a file or its content as YAML text or as a mapping, and read its result,
    which is kept below `results`. `sets` and `quick`: as `--set` and `--quick`; progress is told on
    standard error. Cells that failed are in `.runs`, with the reason. Errors: CampaignError,
    RequestError, StoreError; KeyboardInterrupt, after which `resume` goes on.
    """
    from netbench import campaign as file

    if isinstance(campaign, Mapping):
        campaign = json.dumps(campaign, indent=1, ensure_ascii=False, default=str)
    if isinstance(campaign, str) and ("\n" in campaign or campaign.startswith("{")):
        ready = file.parse(campaign, "campaign", sets, quick=quick)
    else:
        ready = file.load(campaign, sets, quick=quick)
    conclusion = start(ready, Path(results))
    if conclusion.why == "interrupted":
        raise KeyboardInterrupt
    return load(conclusion.path)


def transfer(
    *words: str,
    results: Path | str | None = None,
    seconds: Callable[[Second], None] | None = None,
    **keys: object,
) -> Results:
    """One cell without a file: `transfer("rcv", send="sendfile", source="/srv/image.iso")`, or as
    words, `transfer("repeat.min=5")`. A word without `=` is an SSH destination, to which this
    machine sends; without one both ends are here.

    The result is kept below `results`, or in a temporary folder, which goes with the Results.
    `seconds` is told what a run moves while it lasts, about each second of it. Errors:
    CampaignError, RequestError, HostError; NetbenchError with the reason when the run failed.
    """
    from netbench.run import conductor

    deep = (bool, dict, list, tuple)
    texts = {k: json.dumps(v, default=str) if isinstance(v, deep) else v for k, v in keys.items()}
    asked = [*words, *(f"{key}={text}" for key, text in texts.items())]
    folder = Path(results or tempfile.mkdtemp(prefix="netbench-"))
    with ExitStack() as end:
        if results is None:
            end.callback(shutil.rmtree, folder, ignore_errors=True)
        with _transfer_cell(asked) as (one_cell, channels):
            conclusion = conductor.start(_pinned(one_cell), folder, None, channels, seconds)
        if conclusion.why == "interrupted":
            raise KeyboardInterrupt
        result = load(conclusion.path)
        if conclusion.exit_code or not (result.runs["status"] == "ok").any():
            reasons = [str(reason) for reason in result.runs["reason"] if reason]
            raise NetbenchError(reasons[-1] if reasons else conclusion.reason)
        weakref.finalize(result, end.pop_all().close)
    return result


@contextmanager
def _transfer_cell(words: Sequence[str]) -> Iterator[tuple[Campaign, ChannelFactory]]:
    """The campaign of a transfer, and the ways to its hosts. Errors: as transfer."""
    from netbench import campaign
    from netbench.run.worker_pool import open_channel

    destinations = [word for word in words if "=" not in word]
    keys = [word for word in words if "=" in word]
    if not destinations:
        with _made(campaign.transfer_cell(keys), lambda _: None) as cell:
            yield cell, open_channel
        return
    if len(destinations) > 1 or not destinations[0]:
        raise RequestError(
            f"transfer: expected one host, an SSH destination, and keys as KEY=VALUE, got"
            f" {' and '.join(map(repr, destinations))}"
        )
    name = _SCHEME_OR_PORT.sub("", destinations[0]).rpartition("@")[2]
    if ":" in name:  # an IPv6 address
        name = "there"
    hosts = {"here": "local", name: {"ssh": destinations[0]}}
    keys.insert(0, f"hosts={json.dumps(hosts)}")
    cell = campaign.transfer_cell(keys)
    far = cell.hosts[name]
    with closing(open_channel(far)) as channel:
        if far.address is None:
            addresses = channel.addresses()  # type: ignore[attr-defined]  # it has an `ssh`
            if addresses is None:
                raise RequestError(
                    f"transfer: {name} is reached through another host, so that its data address"
                    f" is not known; add hosts.{name}.address=ADDRESS"
                )
            both = dict(zip(hosts, addresses, strict=True))
            addressed = [f"hosts.{host}.address={address}" for host, address in both.items()]
            addressed += ["ip=6"] if ":" in addresses[1] else []
            cell = campaign.transfer_cell([keys[0], *addressed, *keys[1:]])
        yield cell, lambda host: channel if host.name == name else open_channel(host)


def build_report(path: Path, cells: bool = False) -> Report:
    """The report of a result folder; cells: a fleet's with its tables of cells."""
    from netbench.report.build import build

    return build(path, cells)


def compare(
    result: Results | Path | str,
    other: Results | Path | str | None = None,
    *,
    factor: str | None = None,
    baseline: str | int | None = None,
    margin: str | float | None = None,
    metrics: Sequence[str] = (),
    gates: Sequence[str] = (),
    history: Path | None = None,
    force: bool = False,
) -> Compared:
    """Two results, or the levels of a factor of one. `margin` is 1% or 0.01, a gate throughput<-2%.
    `history`: a folder with earlier results of A's campaign, whose spread gives two results their
    verdicts; `force`: gates are judged without it. The answer is shown as text, and in notebooks as
    a page. Errors: RequestError.
    """
    from netbench.base.units import parse_share
    from netbench.read.gates import known_metric, parse
    from netbench.report.question import of_factor, of_results
    from netbench.report.source import Source

    if other is not None and (factor is not None or baseline is not None):
        raise RequestError(
            "--factor and --baseline compare levels within one result; leave them out with two"
            " results"
        )
    paths = [
        find_result(each) if isinstance(each, Path | str) else each.path
        for each in (result, other)
        if each is not None
    ]
    _refuse_unlike(paths, history, force)
    sources = [Source.of(path) for path in paths]
    captured = {name for source in sources for name in source.result.units}
    try:
        within = parse_share(margin) if isinstance(margin, str) else margin
        chosen = [known_metric(name, captured) for name in metrics]
        parsed = [parse(gate, captured) for gate in gates]
    except ValueError as error:
        raise RequestError(f"compare: {error}") from error
    if within is not None and not 0 < within < 1:
        raise RequestError(
            f"compare: --margin {margin}: expected more than 0 and less than 100%, such as 1%"
        )
    if other is None:
        base = None if baseline is None else str(baseline)
        return of_factor(sources[0], factor, base, within, chosen, parsed)
    return of_results(sources[0], sources[1], within, chosen, parsed, history, force)


def _refuse_unlike(paths: Sequence[Path], history: Path | None, force: bool) -> None:
    """Errors: RequestError for results that no comparison takes together."""
    if len(paths) > 1 and paths[0].resolve() == paths[1].resolve():
        raise RequestError(
            f"compare: {paths[1]} is named twice, and differs in nothing from itself; name two"
            f" results, such as `{PROGRAM} compare latest~1 latest`"
        )
    if (history is not None or force) and len(paths) == 1:
        raise RequestError(
            "--history and --force are of two results; leave them out to compare the levels of one"
        )
    if history is not None and not history.is_dir():
        raise RequestError(
            f"compare: --history {history}: no such folder; name one that earlier results are below"
        )


def write_report(report: Report, files: Mapping[str, Path]) -> None:
    """Write a report as `html`, `markdown`, `csv` or `junit`, each to a file of its own; where a
    result has nothing for one of them, none is written. Errors: ReportError; PlaceError, with the
    files before it written.
    """
    from importlib import import_module

    from netbench.report import speedscope

    written = []
    for kind, file in files.items():
        has_flames = kind == "html" and bool(report.source.profiles.cells)
        more = {"flames": f"{file.stem}.speedscope.json"} if has_flames else {}
        written.append((file, import_module(f"netbench.report.{kind}").render(report, **more)))
        if has_flames:
            stacks = speedscope.render(report.source)
            written.append((file.with_name(more["flames"]), stacks))
    for file, text in written:
        _write_form(file, text, report.source.result.path / "report")


def _write_form(file: Path, text: str, own_folder: Path | None = None) -> None:
    """Write one form; `own_folder` is made for it. Errors: PlaceError."""
    # what is no character stays as YAML has escaped it
    with replacing(file, make_folder=file.parent == own_folder) as draft:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")


def results_below(paths: Sequence[Path], notes: list[str] | None = None) -> list[Path]:
    """Results as they are; in place of a folder of results those below it, oldest
    first, without parts that were merged there. `notes` gets what those that cannot be read are
    left out for; without it they are an error.
    """
    from netbench.read.overview import folders
    from netbench.result.files import read_plan

    result_paths: list[Path] = []
    for path in paths:
        below = [] if path.is_file() or (path / "records.jsonl").exists() else folders(path)
        plans = {}
        for folder in reversed(below):
            with _noted(folder, notes):
                plans[folder] = read_plan(folder / "plan.json")
        merged = {part.result for plan in plans.values() for part in plan.parts}
        own = [each for each, plan in plans.items() if not plan.part or each.name not in merged]
        result_paths += own or [path]
    return result_paths


@contextmanager
def _noted(folder: Path, notes: list[str] | None) -> Iterator[None]:
    if notes is None:
        yield
        return
    with unreadable(folder) as why:
        yield
    notes += [f"left out: {each}" for each in why]


def export_table(paths: Sequence[Path], table: str, file: Path) -> list[str]:
    """Write results as `.parquet` or `.csv`; what to know. Errors: RequestError, PlaceError."""
    from netbench.tables.table_files import write_table

    return write_table(results_below(paths), table, file)


def export_text(paths: Sequence[Path], form: str, file: Path) -> list[str]:
    """Write results as `benchstat`, `otava`, `openmetrics` (a file), `ministat` or `hgrm` (a
    folder); what the reader should know. Errors: RequestError, PlaceError; StoreError.
    """
    from netbench.report.source import Source
    from netbench.tables.exports import benchstat, hgrm, ministat, openmetrics, otava
    from netbench.tables.table_files import write_text

    sources, notes = [Source.of(path) for path in paths], list[str]()
    results = [source.result for source in sources]
    if form in ("ministat", "hgrm"):
        for name, text in ministat(results) if form == "ministat" else hgrm(results, notes):
            write_text(text, file / name)
        return notes
    if form in ("benchstat", "openmetrics"):
        lines = benchstat(results) if form == "benchstat" else openmetrics(results, notes)
        write_text("\n".join([*lines, ""]), file)
        return notes
    text, left_out = otava(sources)
    write_text(text, file)
    named = ", ".join(left_out[:3]) + (", ..." if len(left_out) > 3 else "")
    return [f"{file}: {named}: left out, since not every result has them"] if left_out else []


def query(sql: str, paths: Sequence[Path]) -> Answer:
    """The answer of SQL over the tables runs, cells, samples and facts of results, and over the
    views of hosts; of folders of results, too. Its `notes` say which results of a folder cannot be
    read. Errors: RequestError; StoreError.
    """
    from netbench.report.source import Source
    from netbench.tables.database import Database

    notes: list[str] = []
    sources = []
    for path in results_below(paths, notes):
        with _noted(path, None if path in paths else notes):
            sources.append(Source.of(path))
    if notes and not sources:
        raise StoreError("\n".join(notes))
    with Database(sources) as database:
        answer = database.query(sql)
        return answer._replace(notes=[*notes, *answer.notes])


def write_index(results: Path, file: Path) -> None:
    """Write a page of all results below a folder. Errors: RequestError, PlaceError."""
    from netbench.report.index import render

    if not results.is_dir():
        raise RequestError(f"{results}: no such folder; name one that results are below")
    _write_form(file, render(results, file))


FORMS = {"text": "report.txt", "letter": "letter.txt"}
FILES = {"html": "index.html", "markdown": "report.md", "csv": "cells.csv", "junit": "junit.xml"}


def write_bundle(report: Report, file: Path) -> None:
    """One archive of a result: its folder, and its report in every form. Errors: PlaceError."""
    from importlib import import_module

    from netbench.result import bundles

    with tempfile.TemporaryDirectory(prefix="netbench-") as folder:
        for form, name in FORMS.items():
            with suppress(ReportError):  # a campaign that compares nothing has no letter
                text = str(import_module(f"netbench.report.{form}").render(report))
                _write_form(Path(folder) / name, text)
        for kind, name in FILES.items():
            with suppress(ReportError):  # nor a JUnit file
                write_report(report, {kind: Path(folder) / name})
        bundles.write_bundle(report.source.result.path, Path(folder), file)
