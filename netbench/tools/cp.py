"""cp(1) of coreutils: a whole file."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.model import Transfer
from netbench.tools import copies
from netbench.tools.base import Adaptor, Commands, Output, Place, Reading


class Cp(Adaptor):
    """It chooses its calls itself (copy_file_range(2), read(2) and write(2))."""

    name = "cp"
    program, package = "cp", "coreutils"

    def limits(self, transfer: Transfer, one_host: bool) -> Iterator[str]:
        yield from copies.limits(transfer, one_host, ("file",))
        yield from copies.limits_of_programs(transfer)

    def commands(self, transfer: Transfer, place: Place) -> Commands:
        paths = copies.source_path(transfer), copies.sink_path(transfer)
        return Commands(("cp", "--", *paths), on_receiver=copies.runs_on_receiver(transfer))

    def reading(self, transfer: Transfer, output: Output) -> Reading:
        return copies.whole_file(output)
