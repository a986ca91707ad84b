"""The kernels that a campaign's cells are on, and whether their builds fit its boots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netbench.campaign.problems import Problems
from netbench.campaign.schema.file import FileKeys
from netbench.model import Cell, Kernel, Repeat


def kernels_of(
    file: FileKeys, built: Sequence[Cell], repeat: Repeat, problems: Problems
) -> dict[str, Kernel]:
    """The kernels that cells are on, in their order; a level that `kernels:` does not name is the
    release of an installed one.
    """
    levels = dict.fromkeys(cell.kernel for cell in built if cell.kernel)
    kernels = {
        name: file.kernels[name].kernel(name)
        if name in file.kernels
        else Kernel(name, release=name)
        for name in levels
    }
    several = {name: len(kernel.each) for name, kernel in kernels.items() if len(kernel.each) > 1}
    if several:
        _fit(several, repeat, problems)
    return kernels


def _fit(several: Mapping[str, int], repeat: Repeat, problems: Problems) -> None:
    """Each build is booted in its turn, and the n-th builds of two kernels are a pair. several: how
    many builds there are, of kernels with more than one.
    """
    first, builds = next(iter(several.items()))
    for name, number in several.items():
        if number != builds:
            message = f"expected as many builds as {first} has, {builds}, got {number}"
            problems.add(("kernels", name, "builds"), message)
    if repeat.boots < max(several.values()):
        problems.add(
            ("repeat", "boots"),
            f"expected {max(several.values())} or more, a boot of each build, got {repeat.boots}",
        )
    elif repeat.boots % builds:
        problems.warn(
            ("repeat", "boots"),
            f"{repeat.boots} boots are no multiple of {builds} builds, so that some builds are"
            " booted less often than others",
        )
