"""What the engines of both ends say against a cell before it is run: they are asked alone."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.base.errors import EngineError, HostError
from netbench.engine.binding import Code
from netbench.engine.worker import Worker
from netbench.model import OR_DEFAULT, Campaign, Transfer
from netbench.plan.plan import Unit
from netbench.run import job
from netbench.run.finding import Finding
from netbench.run.job import MadeSinks
from netbench.settings.named import side_of

DEFAULT = "/proc/sys/net/ipv4/tcp_congestion_control"
CONGESTION, DECODE = "set congestion control", "decode job"  # operations of the engine
ENABLING = ("sysctl.", "sysfs.", "nfs")  # settings that can bring files and congestion controls


def check_ends(
    campaign: Campaign, unit: Unit, sender: Worker, receiver: Worker, sinks: MadeSinks | None
) -> Iterator[Finding]:
    """What either end refuses. `sinks`: files of the campaign. Errors: of losing a worker."""
    transfer = _as_asked(unit.cell.transfer)
    name = (transfer.congestion or "").removesuffix(OR_DEFAULT)
    files = sinks.on(receiver) if sinks else {}
    jobs = (
        (sender, job.sender_options(transfer, b"", (), sender)),
        (receiver, job.receiver_options(transfer, b"", (), receiver, files)),
    )
    address = campaign.hosts[receiver.host].data_address(transfer.ip)
    networks = {(each.hello.boot_id, each.hello.network) for each in (sender, receiver)}
    for each in (sender, receiver) if len(networks) > 1 else ():
        own = campaign.hosts[each.host].data_address(transfer.ip)
        if own == "::1" or own.startswith("127."):
            what = f"{own} as data address reaches no other machine or network namespace"
            yield Finding("error", each.host, what, "give its `address:` on the link to measure")
    strict: job.Options = {"congestion_or_default": 0} if name else {}
    for worker, options in jobs:
        asked: job.Options = {**options, "address": address, "ask": 1}
        error = _refusal(worker, asked | strict)
        if error and error.operation == CONGESTION and transfer.congestion != name:
            what = f"{_in_words(error)}: it uses its default, {_default(worker)}"
            yield Finding("warning", worker.host, what, error.remedy)
            error = _refusal(worker, asked)
        if error:
            yield _finding(worker.host, error, _may_enable(campaign, unit))
    if not name and _default(sender) == "bbr":
        yield Finding(
            "warning",
            sender.host,
            "the default congestion control, bbr, paces the sender",
            "set congestion: cubic to measure what the CPU can do",
        )


def _as_asked(transfer: Transfer) -> Transfer:
    """A transfer whose ends are the cell's: of a tool's, its files and congestion control."""
    if not transfer.tool.external:
        return transfer
    plain = Transfer(send="readwrite", source=transfer.source, sink=transfer.sink, ip=transfer.ip)
    return plain._replace(streams=transfer.streams, congestion=transfer.congestion)


def _refusal(worker: Worker, options: job.Options) -> EngineError | None:
    try:
        worker.prepare(options)
    except EngineError as error:
        return error
    except TimeoutError as error:
        raise HostError(str(error)) from error
    return None


def _finding(host: str, error: EngineError, may_enable: bool) -> Finding:
    """`may_enable`: a setting may bring what is not there."""
    if may_enable and error.operation != DECODE:
        what = f"cannot be known before settings are made: {_in_words(error)}"
        return Finding("ok", host, what)
    skips = error.code == Code.UNSUPPORTED
    return Finding("error", host, _in_words(error), error.remedy, skips)


def _in_words(error: EngineError) -> str:
    return error.message if error.operation == DECODE else f"{error.operation}: {error.message}"


def _may_enable(campaign: Campaign, unit: Unit) -> bool:
    names = [side_of(key)[1] for key in (*campaign.settings, *unit.cell.settings)]
    return bool(unit.cell.kernel) or any(
        name in campaign.commands or name.startswith(ENABLING) for name in names
    )


def _default(worker: Worker) -> str:
    return worker.operate("file", DEFAULT)[0].strip()
