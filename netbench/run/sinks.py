"""Files that a campaign has made on its receivers, and so may write again."""

from __future__ import annotations

from collections.abc import Sequence

from netbench.engine.worker import Worker
from netbench.result.journal import Journal, MadeSink


class MadeSinks:
    """Sinks by host, kept in the journal: a resumed campaign knows those of earlier sessions."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._made = {(sink.host, sink.path): sink for sink in journal.made_sinks()}

    def on(self, worker: Worker) -> dict[str, str]:
        """The files of a worker's host by path, as `DEVICE:INODE`. Device 0 is any: their numbers
        may change from boot to boot.
        """
        boot_id = worker.hello.boot_id
        return {
            path: f"{sink.device if sink.boot_id == boot_id else 0}:{sink.inode}"
            for (host, path), sink in self._made.items()
            if host == worker.host
        }

    def add(
        self,
        worker: Worker,
        paths: Sequence[str],
        devices: Sequence[int] | None,
        inodes: Sequence[int] | None,
    ) -> None:
        """Journal files that were just made; those without numbers are devices. Errors:
        StoreError.
        """
        for path, device, inode in zip(paths, devices or (), inodes or (), strict=False):
            sink = MadeSink(path, worker.host, worker.hello.boot_id, device, inode)
            if self._made.get((sink.host, path)) != sink:
                self._made[sink.host, path] = sink
                self._journal.write(sink)
