"""Read a result folder: records are streamed, turned into metrics line by line, and only what
analysis needs is kept.

100,000 records (150 MB) become a frame of about 30 MB; no raw counter stays in memory. The format
is docs/records.md.
"""

from __future__ import annotations

import gc
import json
import math
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from netbench.analysis.accounts import Account, accounts_of
from netbench.analysis.boots import KERNEL, in_boots
from netbench.analysis.counters import SIDES, difference, window_seconds
from netbench.analysis.derive import metrics_of
from netbench.analysis.epochs import Epochs, Latest
from netbench.analysis.noise import labels
from netbench.analysis.pairs import Rounds, rounds
from netbench.analysis.proofs import Declared
from netbench.codec import unreadable
from netbench.errors import StoreError
from netbench.facts.entry import emulated
from netbench.journal import Journal
from netbench.json_lines import cannot_read
from netbench.model import Compare, Repeat
from netbench.record import SCHEMA
from netbench.store import MISSHAPEN, NOISE, misshapen, no_result

STATUSES = ("ok", "failed", "refused", "unsupported", "interrupted")
TEXTS = ("reason", "engaged", "excluded")
FIXED = (
    "run",
    "cell",
    "pair",
    "block",
    "boot",
    "status",
    "reason",
    "started",
    "engaged",
    "excluded",
)


@dataclass(frozen=True)
class Moved:
    """A proof counter over all ok runs of one (cell, pair, side).

    `runs`, total in the window, and runs in which its flag was broken.
    """

    runs: int = 0
    total: float = 0.0
    broken: int = 0


@dataclass(frozen=True)
class Readback:
    """A setting as asked and as the kernel said, as words ("" for none), and in how many `runs` of
    a (cell, pair, side).

    `after` is what it read after the run where that was something else, "" where it was not.
    """

    cell: str
    pair: str
    side: str
    name: str
    asked: str
    read: str
    runs: int
    after: str = ""


@dataclass(frozen=True)
class Used:
    """A counter of what one side used, over the ok `runs` of a (cell, pair) that have it."""

    runs: int
    total: float

    @property
    def mean(self) -> float:
        return self.total / self.runs


@dataclass(frozen=True)
class Loaded:
    """A result folder in memory.

    runs: one row a run in order of execution: run cell pair block boot status reason started
    engaged (why the mechanism did not engage, or "") excluded (why an ok run is not pooled with the
    others: facts that changed) noise (what disturbed its block), one column a factor, one a metric
    (NaN: that run has none). proofs: (cell, pair, side, counter) -> Moved. readbacks: what was
    asked and read of each setting. moved: (cell, pair, what) -> runs in which it moved unasked.
    rejected_connections: connections dropped, by cell. partly_cached: (cell, pair) -> runs whose
    source was not in the page cache, or out of it, as asked. cuts: (cell, pair) -> (runs in which a
    worker was cut off from the controller for a while, the longest time in seconds). windows:
    (cell, pair) -> the shortest window in seconds of runs with procstat. used: (cell, pair, side,
    counter) -> Used, for the counters of rusage and for `seconds`, the measured window. asked: what
    campaign.yaml says of the transfer and of settings, `transfer.chunk` to its words; None without
    one. noise: the entries of noise.jsonl. truncated: the last line was cut. repeat: where hosts
    are booted its `max` is its `min`, since nothing stops early there.
    """

    path: Path
    plan: Mapping[str, Any]
    hosts: Mapping[str, list[Mapping[str, Any]]]
    about: str
    repeat: Repeat
    compare: Compare | None
    factors: tuple[str, ...]
    metrics: tuple[str, ...]
    runs: pd.DataFrame
    proofs: Mapping[tuple[str, str, str, str], Moved]
    readbacks: Sequence[Readback]
    moved: Mapping[tuple[str, str, str], int]
    rejected_connections: Mapping[str, int]
    partly_cached: Mapping[tuple[str, str], int]
    cuts: Mapping[tuple[str, str], tuple[int, float]]
    windows: Mapping[tuple[str, str], float]
    noise: Sequence[Mapping[str, Any]]
    shared: Mapping[str, bool]  # by pair: both ends on one kernel
    used: Mapping[tuple[str, str, str, str], Used] = field(default_factory=dict)
    asked: Mapping[str, str] | None = None
    truncated: bool = False

    @property
    def name(self) -> str:
        return str(self.plan.get("name", self.path.parent.name))

    @property
    def ended(self) -> str:
        """How its last controller ended: `done`, `limit`, `interrupted`, `lost`; "" while it runs
        or when it was killed.
        """
        file = self.path / "journal.jsonl"
        return Journal(file).ended() if file.is_file() else ""

    @property
    def handled(self) -> tuple[str, ...]:
        """What the campaign sets itself: factors, and settings that it holds."""
        return handled(self.plan)

    @property
    def swept(self) -> tuple[str, ...]:
        """Factors of `sweep:`; a key that only `include` gave belongs to its level, so a comparison
        does not hold it equal.
        """
        return tuple(self.plan.get("swept", self.factors)) or self.factors

    @cached_property
    def in_boots(self) -> bool:
        """Whether netbench booted the hosts."""
        return _in_boots(self.plan, self.repeat)

    @cached_property
    def rounds(self) -> Rounds:
        """In which round of the plan each boot was, by its blocks: a resumed campaign may have
        booted twice for one.

        Without boots in the plan, how many of its kernel's came before it.
        """
        planned = [
            str(each["kernel"])
            for each in self.plan.get("boots") or ()
            for _ in range(int(each["blocks"]))
        ]
        ok = self.runs[self.runs["status"] == "ok"]
        first = {
            int(str(boot)): int(block) for boot, block in ok.groupby("boot")["block"].min().items()
        }
        if planned and all(
            block < len(planned) and planned[block] == self.kernels[boot]
            for boot, block in first.items()
        ):
            slots = list(accumulate(int(each["blocks"]) for each in self.plan["boots"]))
            order = [str(each["kernel"]) for each in self.plan["boots"]]
            places = {boot: bisect_right(slots, block) for boot, block in first.items()}
            return {boot: order[:place].count(order[place]) for boot, place in places.items()}
        return rounds(
            [b for b, kernel in self.kernels.items() if kernel == each]
            for each in dict.fromkeys(self.kernels.values())
        )

    @cached_property
    def kernels(self) -> Mapping[int, str]:
        """The level of the factor `kernel` in each boot that has a run, in order; "" where kernels
        are not swept.

        Runs that failed because a kernel did not come up carry the number of the boot before them:
        ok ones are asked first.
        """
        frame = self.runs.iloc[np.argsort((self.runs["status"] == "ok").to_numpy(), kind="stable")]
        levels = frame[KERNEL].astype("object") if KERNEL in self.factors else [""] * len(frame)
        seen = dict(zip(frame["boot"].tolist(), levels, strict=True))
        return {boot: str(seen[boot]) for boot in sorted(seen)}

    @cached_property
    def emulated(self) -> tuple[str, ...]:
        """Pairs of which a host's CPU is software: what was measured there is no speed of any
        machine.
        """
        hosts = {host for host, entries in self.hosts.items() if any(map(emulated, entries))}
        return tuple(pair for pair in map(str, self.plan["pairs"]) if hosts & set(pair.split(">")))

    @property
    def cells(self) -> list[Mapping[str, Any]]:
        """The plan's cells, `{cell, factors}`, in its order."""
        return list(self.plan["cells"])

    @property
    def ok(self) -> pd.DataFrame:
        """The runs that count: ok, and made under the facts that hold at the end."""
        return self.runs[(self.runs["status"] == "ok") & (self.runs["excluded"] == "")]


def load(path: Path | str) -> Loaded:
    """Read a result folder. Errors: ReportError when it is none; StoreError, with file and line,
    for what cannot be read.
    """
    folder = Path(path)
    if not (folder / "records.jsonl").is_file() or not (folder / "plan.json").is_file():
        raise no_result(folder)
    plan, facts = (
        _json(folder / "plan.json"),
        _json(folder / "facts.json") if (folder / "facts.json").is_file() else {},
    )
    try:
        reader = _Reader(plan, facts.get("hosts", {}))
    except MISSHAPEN as error:
        raise misshapen(folder / "plan.json", "a plan with its facts.json", error) from error
    records = folder / "records.jsonl"
    with _no_collector():
        if reader.epochs.several:
            _each(records, reader, reader.latest.see)
        _each(records, reader, reader.add)
    try:
        return reader.loaded(folder, _noise(folder), *_words_of(folder / "campaign.yaml"))
    except MISSHAPEN as error:
        raise misshapen(folder / "plan.json", "a plan", error) from error


@contextmanager
def _no_collector() -> Iterator[None]:
    """Records hold no cycles; looking for some after every few hundred objects is a fifth of the
    time.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_bytes())
    except OSError as error:
        raise cannot_read(file, error) from error
    except ValueError as error:
        raise unreadable(file, f"not JSON: {error}") from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise StoreError(
            f"{file}: expected schema {SCHEMA}, as this version writes; read it with the netbench"
            " that wrote it"
        )
    return found


def _words_of(file: Path) -> tuple[str, dict[str, str] | None]:
    """What is taken from a campaign's text: its `about`, and its words of Loaded.asked; "" and None
    where it cannot be read.
    """
    try:
        found = yaml.load(file.read_text(), Loader=yaml.BaseLoader)
    except (OSError, ValueError, yaml.YAMLError):
        return "", None
    if not isinstance(found, dict):
        return "", None
    parts = {name: found.get(name) for name in ("transfer", "settings")}
    words = {
        f"{n}.{key}": v
        for n, part in parts.items()
        if isinstance(part, dict)
        for key, v in part.items()
    }
    return str(found.get("about", "")), {
        key: v if isinstance(v, str) else json.dumps(v) for key, v in words.items()
    }


def _each(file: Path, reader: _Reader, take: Callable[[Mapping[str, Any]], None]) -> None:
    """Hand over each record. Errors: StoreError with the line of one that is none."""
    for line, record in _lines(file, reader):
        try:
            take(record)
        except MISSHAPEN as error:
            raise misshapen(f"{file}:{line}", "a record", error) from error


def _noise(folder: Path) -> list[Mapping[str, Any]]:
    """The entries of noise.jsonl, if there is one; a last line that is cut is left out. Errors:
    StoreError.
    """
    file = folder / NOISE
    entries: list[Mapping[str, Any]] = []
    try:
        lines = file.read_bytes().splitlines(keepends=True) if file.is_file() else []
        for line in lines:
            if line.endswith(b"\n"):
                entry = json.loads(line)
                entries.append(
                    {"block": int(entry["block"]), "host": str(entry["host"]), "ns": entry["ns"]}
                    | entry
                )
    except OSError as error:
        raise cannot_read(file, error) from error
    except MISSHAPEN as error:
        raise misshapen(file, "readings of noise", error) from error
    return entries


def _lines(file: Path, reader: _Reader) -> Iterator[tuple[int, dict[str, Any]]]:
    """Records with their line numbers. A last line that is cut (no newline: the writer was killed)
    is left out and noted.
    """
    with file.open("rb") as source:
        for number, line in enumerate(source, 1):
            if not line.endswith(
                b"\n"
            ):  # even if it can be read: resume cuts it off and runs it again
                reader.truncated = True
                return
            try:
                record = json.loads(line)
            except ValueError as error:
                raise unreadable(f"{file}:{number}", f"not JSON: {error}") from error
            if not isinstance(record, dict) or record.get("schema") != SCHEMA:
                raise StoreError(
                    f"{file}:{number}: expected a record of schema {SCHEMA}; read it with the"
                    " netbench that wrote it"
                )
            yield number, record


@dataclass
class _Reader:
    """Gathers columns while records stream by."""

    plan: Mapping[str, Any]
    hosts: Mapping[str, list[Mapping[str, Any]]]
    truncated: bool = False
    fixed: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in FIXED})
    values: dict[str, array[float]] = field(default_factory=dict)
    proofs: dict[tuple[str, str, str, str], list[float]] = field(
        default_factory=dict
    )  # runs, total and broken of Moved
    settings: dict[tuple[str, str], list[list[Any]]] = field(
        default_factory=dict
    )  # distinct settings of a cell, each with its number of runs
    rejected_connections: dict[str, int] = field(default_factory=dict)
    partly_cached: dict[tuple[str, str], int] = field(default_factory=dict)
    cuts: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    windows: dict[tuple[str, str], float] = field(default_factory=dict)
    used: dict[tuple[str, str, str], dict[str, list[float]]] = field(
        default_factory=dict
    )  # by counter: runs and total of Used
    seen: set[int] = field(default_factory=set)
    names: tuple[str, ...] | None = (
        None  # the metrics of the run before, when they are all of `values` in its order
    )

    def __post_init__(self) -> None:
        rows = self.plan.get("rows", [])
        self.accounts: dict[str, Account] = accounts_of(rows)
        self.declared = Declared(rows)
        self.boots = {
            (host, int(b["boot"])): b for host, boots in self.hosts.items() for b in boots
        }
        self.ticks = {
            host: int(b["clock_ticks"])
            for (host, _), b in self.boots.items()
            if b.get("clock_ticks")
        }
        self.kernels: dict[tuple[str, int], bool] = {}
        self.known = {str(cell["cell"]) for cell in self.plan["cells"]}
        self.epochs = Epochs(self.hosts, handled(self.plan))
        self.latest = Latest(self.epochs)

    def add(self, record: Mapping[str, Any]) -> None:
        run, cell, pair, status = (
            int(record["run"]),
            str(record["cell"]),
            str(record["pair"]),
            str(record["status"]),
        )
        if run in self.seen:
            raise ValueError(f"run {run} is there twice")
        if status not in STATUSES or cell not in self.known:
            raise ValueError(f"status {status!r} or cell {cell!r} is none of the plan's")
        self.seen.add(run)
        boot = int(record["boot"])
        excluded = self.latest.why_not(record) if status == "ok" and self.epochs.several else ""
        counts = status == "ok" and not excluded
        engaged = self._proof(record, cell, pair) if counts else ""
        if counts:
            self._use(record, cell, pair)
        reason, started = str(record.get("reason", "")), record.get("started")
        row = (
            run,
            cell,
            pair,
            int(record["block"]),
            boot,
            status,
            reason,
            started,
            engaged,
            excluded,
        )
        found = metrics_of(record, self.ticks, self.shared(pair, boot), self.accounts)
        for column, value in zip(self.fixed.values(), row, strict=True):
            column.append(value)
        self._values(found)
        self._settings(record, cell, pair)

    def _values(self, found: Mapping[str, float]) -> None:
        names = tuple(found)
        if names == self.names:  # the same metrics as the run before, nearly always
            for column, value in zip(self.values.values(), found.values(), strict=True):
                column.append(value)
            return
        for name in names:
            if name not in self.values:
                self.values[name] = array("d", [math.nan]) * (len(self.seen) - 1)
        for name, column in self.values.items():
            column.append(found.get(name, math.nan))
        self.names = names if names == tuple(self.values) else None

    def shared(self, pair: str, boot: int) -> bool:
        """Whether a pair's ends are on one kernel: one host, or hosts with equal boot ids."""
        known = self.kernels.get((pair, boot))
        if known is None:
            sender, _, receiver = pair.partition(">")
            ids = [self.boots.get((host, boot), {}).get("boot_id") for host in (sender, receiver)]
            known = self.kernels[pair, boot] = sender == receiver or (
                ids[0] is not None and ids[0] == ids[1]
            )
        return known

    def _proof(self, record: Mapping[str, Any], cell: str, pair: str) -> str:
        """Count proofs; say why the mechanism did not engage (`must_move` stayed 0, `must_not_move`
        moved), or "".
        """
        why = []
        for side in SIDES:
            counters = (record.get("proof") or {}).get(side, {})
            meanings = self.declared.of(side, counters)
            for name, edges in counters.items():
                if len(edges) < 2:
                    continue  # one edge alone shows nothing
                counted = difference(
                    edges[0], edges[-1]
                )  # to the drained edge where there is one: late completions count
                broken = meanings[name].broken(counted)
                if broken:
                    why.append(
                        f"{side}: {name} {'stayed 0' if counted <= 0 else f'counted {counted:.0f}'}"
                    )
                tally = self.proofs.setdefault((cell, pair, side, name), [0, 0, 0])
                tally[0] += 1
                tally[1] += difference(edges[0], edges[1])
                tally[2] += broken
        return "; ".join(why)

    def _use(self, record: Mapping[str, Any], cell: str, pair: str) -> None:
        """Add up what the processes used, and how long it was measured."""
        for who in SIDES:
            side = record.get(who) or {}
            tallies = self.used.setdefault((cell, pair, who), {})
            window = window_seconds(side)
            edges = (side.get("rusage") or {}) | (
                {} if window is None else {"seconds": (0, window)}
            )
            for name, (opening, closing) in edges.items():
                if closing < opening:
                    continue  # it was reset
                tally = tallies.get(name)
                if tally is None:
                    tally = tallies[name] = [0, 0]
                tally[0] += 1
                tally[1] += closing - opening

    def _settings(self, record: Mapping[str, Any], cell: str, pair: str) -> None:
        """Count equal read-backs together: they rarely differ between the runs of a cell."""
        settings = record.get("settings")
        if settings:
            known = self.settings.setdefault((cell, pair), [])
            for seen in known:
                if seen[0] == settings:
                    seen[1] += 1
                    break
            else:
                known.append([settings, 1])
        sender = record.get("sender") or {}
        resident, wanted = (
            sender.get("resident"),
            0 if sender.get("cache") == "cold" else sender.get("source_size"),
        )
        again = sender.get("cache") == "cold" and _read(record) > sender.get(
            "source_size", 0
        )  # only its first pass was cold
        if resident is not None and (resident != wanted or again):
            self.partly_cached[cell, pair] = self.partly_cached.get((cell, pair), 0) + 1
        edges = sender.get("time_ns")
        if edges and "procstat" in sender:
            window = (edges[1] - edges[0]) / 1e9
            self.windows[cell, pair] = min(self.windows.get((cell, pair), window), window)
        cut = record.get("cut")
        if cut:
            runs, longest = self.cuts.get((cell, pair), (0, 0.0))
            self.cuts[cell, pair] = runs + 1, max(longest, *map(float, cut.values()))
        dropped = (record.get("receiver") or {}).get("rejected_connections")
        if dropped:
            self.rejected_connections[cell] = self.rejected_connections.get(cell, 0) + int(dropped)

    def readbacks(self) -> list[Readback]:
        return [
            Readback(cell, pair, side, name, asked, read, runs, after)
            for (cell, pair), known in self.settings.items()
            for settings, runs in known
            for side in SIDES
            for name, words in (settings.get(side) or {}).items()
            for asked, read, after in [
                [_word(words.get(when)) for when in ("asked", "read", "after")]
            ]
        ]

    def moves(self) -> dict[tuple[str, str, str], int]:
        """What moved with a setting, though nobody asked: (cell, pair, what, in words) -> runs."""
        found: dict[tuple[str, str, str], int] = {}
        for (cell, pair), known in self.settings.items():
            for settings, runs in known:
                for what, how in (settings.get("moved") or {}).items():
                    key = (cell, pair, f"{what} {_change(how)}".strip())
                    found[key] = found.get(key, 0) + runs
        return found

    def loaded(
        self,
        folder: Path,
        noise: Sequence[Mapping[str, Any]],
        about: str,
        asked: Mapping[str, str] | None,
    ) -> Loaded:
        factors = tuple(
            dict.fromkeys(name for cell in self.plan["cells"] for name in cell["factors"])
        )
        return Loaded(
            path=folder,
            plan=self.plan,
            hosts=self.hosts,
            about=about,
            repeat=_repeat(self.plan),
            compare=_compare(self.plan),
            factors=factors,
            metrics=tuple(self.values),
            runs=self._frame(factors, noise),
            proofs={
                key: Moved(int(runs), total, int(broken))
                for key, (runs, total, broken) in self.proofs.items()
            },
            readbacks=self.readbacks(),
            moved=self.moves(),
            rejected_connections=self.rejected_connections,
            partly_cached=self.partly_cached,
            cuts=self.cuts,
            windows=self.windows,
            noise=noise,
            used={
                (*key, name): Used(int(n), total)
                for key, tallies in self.used.items()
                for name, (n, total) in tallies.items()
            },
            asked=asked,
            shared={
                str(pair): self.shared(str(pair), boot)
                for pair in self.plan["pairs"]
                for boot in self._boots(str(pair))
            },
            truncated=self.truncated,
        )

    def _boots(self, pair: str) -> list[int]:
        """The boots in which a pair ran; the first where it did not run at all."""
        return [boot for known, boot in self.kernels if known == pair] or [0]

    def _noise(self, noise: Sequence[Mapping[str, Any]]) -> list[str]:
        """Of each run what disturbed its block on the pair's hosts, in words."""
        seen = labels(noise, self.ticks)
        words: dict[tuple[str, int], str] = {}
        for pair, block in (
            set(zip(self.fixed["pair"], self.fixed["block"], strict=True)) if seen else ()
        ):
            hosts = dict.fromkeys(pair.split(">"))
            words[pair, block] = "; ".join(
                dict.fromkeys(word for host in hosts for word in seen.get((host, block), ()))
            )
        return [
            words.get(place, "")
            for place in zip(self.fixed["pair"], self.fixed["block"], strict=True)
        ]

    def _frame(self, factors: tuple[str, ...], noise: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
        words = {str(cell["cell"]): cell["factors"] for cell in self.plan["cells"]}
        cells = pd.Categorical(self.fixed["cell"], categories=list(words))
        frame = pd.DataFrame(
            {name: self.fixed[name] for name in FIXED if name not in ("cell", "started")}
        )
        frame.insert(1, "cell", pd.Series(cells))
        for name in ("pair", "status"):
            frame[name] = frame[name].astype("category")
        for name in TEXTS:
            frame[name] = frame[name].astype(
                "object"
            )  # without any run pandas takes them for numbers
        frame["noise"] = self._noise(noise)
        frame["started"] = pd.to_datetime(
            pd.Series(self.fixed["started"], dtype="str"), format="ISO8601", utc=True
        )
        columns = {name: _factor(words, name, cells) for name in factors}
        metrics = {name: pd.Series(column, dtype="float64") for name, column in self.values.items()}
        return pd.concat([frame, pd.DataFrame(columns | metrics)], axis=1)


def _factor(
    words: Mapping[str, Mapping[str, str]], factor: str, cells: pd.Categorical[str]
) -> pd.Categorical[str]:
    """One factor's column, levels in the plan's order; missing where a cell has no level of it."""
    levels = list(dict.fromkeys(str(f[factor]) for f in words.values() if factor in f))
    place = {level: i for i, level in enumerate(levels)}
    codes = np.array(
        [place[str(f[factor])] if factor in f else -1 for f in words.values()], dtype=np.int64
    )
    return pd.Categorical.from_codes(codes[cells.codes], categories=pd.Index(levels))


def _read(record: Mapping[str, Any]) -> int:
    """Bytes read of the source by the closing of the window, warm-up included: the most that a
    stream sent of it, as each sends all of it; where the receiver reads it (NFS), what its streams
    did together, as each has a part.
    """
    sent, received = (
        (record.get(side) or {}).get("flow", {}).get("bytes") for side in ("sender", "receiver")
    )
    return (max(sent[1], default=0) if sent else 0) or (sum(received[1]) if received else 0)


def _word(value: Any) -> str:
    """A setting's value as text; "" for none."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _change(how: Any) -> str:
    """What a setting went from and to, in words; another version's form as it is."""
    return (
        f"from {_word(how[0])} to {_word(how[1])}"
        if isinstance(how, list) and len(how) == 2
        else _word(how)
    )


def _repeat(plan: Mapping[str, Any]) -> Repeat:
    raw = plan["repeat"]
    asked = Repeat(
        raw["min"],
        raw["max"],
        raw["confidence"],
        raw["precision"],
        tuple(raw["metrics"]),
        raw.get("boots", 1),
    )
    return replace(asked, max=asked.min) if _in_boots(plan, asked) else asked


def handled(plan: Mapping[str, Any]) -> tuple[str, ...]:
    """What a plan.json's campaign sets itself: the factors of its cells, and the settings that it
    holds.
    """
    return tuple(
        dict.fromkeys(
            [
                *(str(name) for cell in plan["cells"] for name in cell["factors"]),
                *plan.get("held", ()),
            ]
        )
    )


def _in_boots(plan: Mapping[str, Any], repeat: Repeat) -> bool:
    return bool(plan.get("boots")) or in_boots(
        repeat, {str(name) for cell in plan["cells"] for name in cell["factors"]}
    )


def _compare(plan: Mapping[str, Any]) -> Compare | None:
    raw = plan.get("compare")
    return Compare(raw["factor"], raw["baseline"], raw.get("margin")) if raw else None
