"""cat(1) of coreutils: a whole file."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.model import Transfer
from netbench.tools import copies
from netbench.tools.base import Adaptor, Commands, Output, Place, Reading


class Cat(Adaptor):
    """It chooses the size of its calls itself. A shell opens its output, and becomes cat."""

    name = "cat"
    program, package = "cat", "coreutils"

    def limits(self, transfer: Transfer, one_host: bool) -> Iterator[str]:
        yield from copies.limits(transfer, one_host, ("file",))
        yield from copies.limits_of_programs(transfer)

    def commands(self, transfer: Transfer, place: Place) -> Commands:
        script = 'exec cat -- "$1" >"$2"'
        paths = copies.source_path(transfer), copies.sink_path(transfer)
        argv = "sh", "-c", script, "cat", *paths
        return Commands(argv, on_receiver=copies.runs_on_receiver(transfer))

    def reading(self, transfer: Transfer, output: Output) -> Reading:
        return copies.whole_file(output)
