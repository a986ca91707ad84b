"""The functions of netbench's own worker, by offset in its file: what hosts run are copies of the
files of this installation. ELF as elf(5) has it.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from netbench import engine

FOLDER = Path(engine.__path__[0])
WORKER = "worker-"  # how the name of a copied worker begins; its hash follows
LOADED, SYMBOLS, FUNCTION = 1, 2, 2  # PT_LOAD, SHT_SYMTAB, STT_FUNC


@dataclass(frozen=True)
class Functions:
    """Functions of a file by their offsets, in order."""

    offsets: tuple[int, ...]
    ends: tuple[int, ...]
    names: tuple[str, ...]

    def at(self, offset: int) -> str:
        """The function at an offset, or ""."""
        i = bisect_right(self.offsets, offset) - 1
        return self.names[i] if i >= 0 and offset < self.ends[i] else ""


def find_symbol(architecture: str, path: str, offset: int) -> str:
    """The function at an offset in a file that a host has mapped; "" where the file is not
    netbench's, or has no symbols here.
    """
    name = path.rpartition("/")[2]
    if name.startswith("_native."):
        return functions(f"{FOLDER}/{name}").at(offset)
    if name.startswith(WORKER):
        return functions(f"{FOLDER}/{WORKER}{architecture}").at(offset)
    return ""


@cache
def functions(file: str) -> Functions:
    """The functions of an ELF file of 64 bits and this machine's byte order; none of any other
    file.
    """
    try:
        found = sorted(_functions(Path(file).read_bytes()))
    except (OSError, struct.error, ValueError, IndexError):
        found = []
    starts = {start: (end, name) for start, end, name in found}
    return Functions(
        tuple(starts), tuple(e for e, _ in starts.values()), tuple(n for _, n in starts.values())
    )


def _functions(data: bytes) -> Iterator[tuple[int, int, str]]:
    """(offset, end, name) of each function in the symbol table."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not ELF")
    programs, sections = struct.unpack_from("<QQ", data, 32)
    program_size, program_count, section_size, section_count = struct.unpack_from("<4H", data, 54)
    segments = []
    for i in range(program_count):
        kind, _, offset, address, _, size = struct.unpack_from(
            "<IIQQQQ", data, programs + i * program_size
        )
        if kind == LOADED:
            segments.append((address, size, offset))
    heads = [
        struct.unpack_from("<IIQQQQII", data, sections + i * section_size)
        for i in range(section_count)
    ]
    for _, kind, _, _, at, size, link, _ in heads:
        if kind != SYMBOLS:
            continue
        names = heads[link][4]
        for symbol in range(at, at + size, 24):
            name, info, _, _, value, length = struct.unpack_from("<IBBHQQ", data, symbol)
            if info & 15 != FUNCTION or not length:
                continue
            for address, covered, offset in segments:
                if address <= value < address + covered:
                    start = value - address + offset
                    end = data.index(b"\0", names + name)
                    yield start, start + length, data[names + name : end].decode("ascii", "replace")
