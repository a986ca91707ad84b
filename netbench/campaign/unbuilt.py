"""What a campaign asks for that this version does not execute yet, in sentences: never ignored,
`check` refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from netbench.engine.catalogue import Catalogue
from netbench.model import Cell


def _methods(cells: Iterable[Cell], catalogue: Catalogue) -> Iterator[str]:
    for cell in cells:
        if cell.transfer.send not in catalogue.send:
            yield f"send: {cell.transfer.send} is not built yet"
        if cell.transfer.receive not in catalogue.receive:
            yield f"receive: {cell.transfer.receive} is not built yet"


def unbuilt(cells: Iterable[Cell], catalogue: Catalogue) -> tuple[str, ...]:
    """One sentence a key or word that cannot be executed yet, each once."""
    return tuple(dict.fromkeys(_methods(cells, catalogue)))
