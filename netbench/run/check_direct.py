"""Whether the methods of a cell can do direct I/O on its files."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.engine.catalogue import Named
from netbench.engine.worker import Worker
from netbench.model import Transfer
from netbench.run.finding import Finding


def without_direct_io(
    transfer: Transfer, send: Named | None, receive: Named | None
) -> Iterator[tuple[str, str]]:
    """The sides (send, receive) whose method cannot use a file that is open with O_DIRECT, and why
    not.
    """
    if not transfer.direct:
        return
    uses = "direct: on is for methods that {} by calls with a buffer of their own"
    if transfer.source.kind in ("file", "files") and send and not send.has("direct"):
        why = f"send: {send.name} cannot send from a file that is open with O_DIRECT"
        yield "send", f"{why}; {uses.format('read a file')}"
    if transfer.sink.kind == "file" and receive and not receive.has("direct"):
        why = f"receive: {receive.name} cannot write to a file that is open with O_DIRECT"
        yield "receive", f"{why}; {uses.format('write a file')}"


def check_direct(transfer: Transfer, sender: Worker, receiver: Worker) -> Iterator[Finding]:
    """Findings about direct I/O of a transfer."""
    if transfer.tool.external:
        return
    methods = (
        sender.catalogue.send.get(transfer.send),
        receiver.catalogue.receive.get(transfer.receive),
    )
    for side, why in without_direct_io(transfer, *methods):
        worker = sender if side == "send" else receiver
        remedy = "use another method, or direct: off with it"
        yield Finding("error", worker.host, why, remedy, skips=True)
