"""What a tool is to the conductor: limits, command lines, and a parser."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

from netbench.model import OR_DEFAULT, Transfer
from netbench.result.record import Capture, ToolReading

THROUGHPUT = "throughput"
BYTES_MAX = 2**63
SECONDS_MIN = 1e-9  # no clock of a tool shows less


class Place(NamedTuple):
    """Where a run of a tool is: the receiver's data address, a port, the CPUs of the two sides
    ((): not pinned), and the sender's address, "" where the campaign names none.
    """

    address: str
    port: int
    sender_cpus: tuple[int, ...] = ()
    receiver_cpus: tuple[int, ...] = ()
    source: str = ""


class Commands(NamedTuple):
    """A tool's command lines. `server` is () where it needs none; it is ready once its output
    matches `ready`, or, where that is "", once it listens on the run's port. `warmup`, `window`:
    of the client, in ns; without a window it is measured over its whole life. `pinned`: the command
    lines name the CPUs themselves. `on_receiver`: the client runs there.
    """

    client: tuple[str, ...]
    server: tuple[str, ...] = ()
    ready: str = ""
    warmup: int = 0
    window: int = 0
    pinned: bool = False
    on_receiver: bool = False


class Output(NamedTuple):
    """What a tool printed: its client's output and errors, and its server's."""

    text: str
    errors: str = ""
    server: str = ""


class Reading(NamedTuple):
    """What a tool's output says: what it moved, and what patterns found, by metric."""

    tool: ToolReading | None = None
    captures: Mapping[str, Capture] = {}


class Adaptor(ABC):
    """One tool. `program` is what it needs ("": the first word of its command lines).
    `served_another`: what it says where something else than its client may have been connected to
    its server. `drops_root`: it needs no more than a port; the others open the campaign's files,
    or are its own programs.
    """

    name: str
    program: str = ""
    served_another: re.Pattern[str] | None = None
    drops_root: bool = False

    @abstractmethod
    def limits(self, transfer: Transfer, one_host: bool) -> Mapping[str, object]:
        """Why it cannot do a cell: each reason there may be -> whether it holds. `one_host`: sender
        and receiver are one machine.
        """

    @abstractmethod
    def commands(self, transfer: Transfer, place: Place) -> Commands:
        """Its command lines for a cell that it can do."""

    @abstractmethod
    def reading(self, transfer: Transfer, output: Output) -> Reading:
        """What it says. Errors: ValueError with what it printed."""

    def complaint(self, output: Output) -> str:
        """What it printed about why it failed."""
        return (output.errors.strip() or output.text.strip() or "it printed nothing")[-200:]

    def is_complete(self, output: Output) -> bool:
        """Whether there is nothing that its server still has to print."""
        return True

    def unable(self, transfer: Transfer, one_host: bool) -> str:
        """Why it cannot do a cell, in one sentence, or ""."""
        reasons = {
            "its threads are its own, so `threads` says nothing": transfer.threads,
            "it takes one congestion control": (transfer.congestion or "").endswith(OR_DEFAULT),
            **self.limits(transfer, one_host),
        }
        why = "; ".join(reason for reason, holds in reasons.items() if holds)
        return f"{self.name} cannot do this cell: {why}" if why else ""


def moved(bytes_: int, seconds: float) -> ToolReading:
    """What a tool says that it moved. Errors: ValueError for what nothing can have moved."""
    if not 0 <= bytes_ < BYTES_MAX:
        raise ValueError(f"it printed no result: {bytes_:.3g} bytes")
    if not SECONDS_MIN <= seconds < math.inf:
        raise ValueError(f"it measured no time: {seconds:g} s")
    return ToolReading(bytes_, seconds)


def seconds_of(transfer: Transfer) -> str:
    """The duration of a cell in seconds, as a command line has it: `10`, `0.5`."""
    return f"{(transfer.duration or 0) / 1e9:g}"


def shown(text: str) -> str:
    """The end of an output, in quotes, for a message."""
    return repr(re.sub(r"\s+", " ", text).strip()[-200:])
