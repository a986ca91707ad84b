"""Another layout of a kernel's code: its objects in a shuffled order, linked again.

The linker takes what its script names first. kbuild's script (vmlinux.lds) takes the `.text` of all
objects in the order of the command line; a shuffled one names that of each object before, in an
order by seed. kbuild sees a newer script and links again: no object is compiled, and what other
sections hold, the order of initcalls among it, stays as it is.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from netbench.base.errors import RequestError
from netbench.model import Kernel

LINKED = "vmlinux"
_SCRIPT, _MAP = "arch/*/kernel/vmlinux.lds", "System.map"
_ARCHIVES = ("built-in.a", "lib.a")
_TEXT = re.compile(r"\*\((\.text(?:\s[^)]*)?)\)")  # TEXT_MAIN of asm-generic/vmlinux.lds.h
_CODE = re.compile(r"[0-9a-f]+ [tT] ")


class Unshuffled:
    """What kbuild made of a commit before anything was shuffled: the linker script, and where
    functions were. Kept beside the objects, as long as they are of that commit.
    """

    def __init__(self, tree: Path, commit: str) -> None:
        self._tree, self._objects = tree, tree / "objects"
        self._script, self._map = tree / f"{commit}.lds", tree / f"{commit}.map"

    @property
    def is_kept(self) -> bool:
        return self._script.exists()

    def forget(self) -> None:
        """Leave nothing of any commit: kbuild makes its script, and links, anew."""
        for pattern in ("*.lds", "*.map", f"objects/{_SCRIPT}", f"objects/{LINKED}"):
            for file in self._tree.glob(pattern):
                file.unlink()

    def keep(self) -> None:
        """Take in what was linked."""
        if (place := self._place) is not None:
            shutil.copyfile(self._objects / _MAP, self._map)
            shutil.copyfile(place, self._script)

    @property
    def _place(self) -> Path | None:
        return next(self._objects.glob(_SCRIPT), None)

    def relink(self, kernel: Kernel, make: Callable[[], None]) -> None:
        """Link again by the seed of `kernel.layout`. Errors: RequestError."""
        place = self._place
        if place is None:
            raise RequestError(
                f"kernel {kernel.name}: {kernel.rev} has no {_SCRIPT}; use builds: 1"
            )
        text = shuffled(self._script.read_text(), members(self._objects), kernel.layout)
        if text:
            place.write_text(text)
            make()
        if place.read_text() != text or _code(self._objects / _MAP) == _code(self._map):
            raise RequestError(
                f"kernel {kernel.name}: {kernel.rev} cannot be shuffled: its objects are joined"
                " before the last link; put CONFIG_X86_KERNEL_IBT=n, and no LTO, in `fragment:`,"
                " or use builds: 1"
            )


def members(objects: Path) -> list[str]:
    """The objects that the kernel is linked from, as its archives name them: in an order that no
    file system decides. Errors: RequestError.
    """
    names: set[str] = set()
    for archive in (file for name in _ARCHIVES for file in objects.rglob(name)):
        words = ("ar", "t", str(archive.relative_to(objects)))
        done = subprocess.run(words, cwd=objects, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RequestError(f"ar cannot list {archive}: {done.stderr.strip()}")
        names |= {line for line in done.stdout.splitlines() if line.endswith(".o")}
    return sorted(names)


def shuffled(text: str, objects: Iterable[str], seed: int) -> str:
    """A linker script that takes the code of these objects in an order by `seed`, then all other
    code as before; "" for one that does not take code by *(.text).
    """
    place = _TEXT.search(text)
    if place is None:
        return ""
    order = list(objects)
    random.Random(f"netbench layout {seed}").shuffle(order)
    lines = "".join(f"*{name}({place[1]})\n" for name in order)
    return f"{text[: place.start()]}\n{lines}{text[place.start() :]}"


def _code(file: Path) -> list[str]:
    """The functions of a System.map, with their addresses."""
    return [line for line in file.read_text().splitlines() if _CODE.match(line)]
