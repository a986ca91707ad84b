"""Files that a campaign has made on its receivers, and so may write again."""

from __future__ import annotations

from netbench.journal import Journal, MadeSink


class MadeSinks:
    """Sinks by host, kept in the journal: a resumed campaign knows those of earlier sessions."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._made = {(sink.host, sink.path) for sink in journal.made_sinks()}

    def on(self, host: str) -> set[str]:
        """The paths of one host's."""
        return {path for at, path in self._made if at == host}

    def add(self, host: str, path: str) -> None:
        """Journal a file that was just made. Errors: StoreError."""
        if (host, path) not in self._made:
            self._made.add((host, path))
            self._journal.write(MadeSink(path=path, host=host))
