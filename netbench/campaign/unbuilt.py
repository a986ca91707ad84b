"""What a campaign asks for that this version does not execute yet, in sentences: never ignored, `check` refuses it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from netbench.campaign.schema import FileKeys
from netbench.engine.catalogue import Catalogue
from netbench.model import Cell


def _keys(file: FileKeys) -> Iterator[tuple[str, str]]:
    yield from ((f"sweep.{key}", key) for key in file.sweep)
    yield from ((f"include[{i}].{key}", key) for i, entry in enumerate(file.include) for key in entry)


def _methods(cells: Iterable[Cell], catalogue: Catalogue) -> Iterator[str]:
    for cell in cells:
        if cell.transfer.send not in catalogue.send:
            yield f"send: {cell.transfer.send} is not built yet"
        if cell.transfer.receive not in catalogue.receive:
            yield f"receive: {cell.transfer.receive} is not built yet"


def _sentences(file: FileKeys, cells: Iterable[Cell], catalogue: Catalogue) -> Iterator[str]:
    if file.lab and file.lab.kind == "qemu":
        yield "lab: qemu is not built yet"
    for path, key in _keys(file):
        if key == "kernel":
            yield f"{path}: kernels are not built yet"
    if file.kernels:
        yield "kernels are not built yet"
    if file.profile:
        yield "profile is not built yet"
    yield from (f"meters: {meter} is not built yet" for meter in file.meters if meter not in catalogue.meters)
    yield from _methods(cells, catalogue)
    if file.repeat.boots > 1:
        yield "repeat.boots: boots are not built yet"


def unbuilt(file: FileKeys, cells: Iterable[Cell], catalogue: Catalogue) -> tuple[str, ...]:
    """One sentence a key or word that cannot be executed yet, each once."""
    return tuple(dict.fromkeys(_sentences(file, cells, catalogue)))
