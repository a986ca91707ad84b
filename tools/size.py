"""`make size`: lines and files of each room beside their budgets (wc -l, as formatted)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRUNK = {
    "cli and api": ("cli api listing", 2_400),
    "campaign and model": ("campaign model", 5_100),
    "plan": ("plan", 550),
    "result": ("result", 1_900),
    "base": ("base", 1_200),
    "hosts and facts": ("hosts facts", 2_900),
    "engine": ("engine", 1_400),
    "settings": ("settings", 1_500),
    "tools": ("tools", 650),
    "run": ("run", 5_000),
    "stats": ("stats", 3_300),
    "read": ("read results", 3_800),
    "report": ("report", 4_600),
    "live": ("live", 750),
    "tables": ("tables", 650),
}
REQUESTS = {"netbench": 1_500, "native": 1_200, "tests": 1_900, "native/tests": 100, "tools": 250}
"""What requests and their latency took."""
PACKAGES = {"netbench": 200, "tests": 300, "tools": 800}
"""What packages, formats, the manual page and completion took."""
LOOPS = 1_130
"""What the loops by hand that methods are held to took, and the bench that runs them."""
ADD_ONS = {
    "kernels": ("kernels", 3_500),
    "lab": ("lab", 2_500),
    "fleet": ("fleet", 2_300),
}


def files(folder: str, *suffixes: str) -> list[Path]:
    """The files of that folder with one of these suffixes, in order."""
    return sorted(file for file in (ROOT / folder).rglob("*") if file.suffix in suffixes)


def lines(found: Iterable[Path]) -> int:
    return sum(file.read_bytes().count(b"\n") for file in found)


def of_rooms(names: str) -> list[Path]:
    """The Python files of these rooms, each a folder or one file."""
    return [
        file for name in names.split() for file in files("netbench", ".py") if _room(file) == name
    ]


def _room(file: Path) -> str:
    return file.relative_to(ROOT / "netbench").parts[0].removesuffix(".py")


def shared_names(found: Iterable[Path]) -> int:
    """Files whose basename another has too, __init__.py apart."""
    names = Counter(file.name for file in found if file.name != "__init__.py")
    return sum(number for number in names.values() if number > 1)


def table() -> list[tuple[str, int, int | None]]:
    """Rows of what, how many today, at most; None: that has no budget."""
    python = files("netbench", ".py")
    rooms = {**TRUNK, **ADD_ONS}
    return [
        (
            "netbench/, lines of Python",
            lines(python),
            44_000 + REQUESTS["netbench"] + PACKAGES["netbench"],
        ),
        ("  and of tables beside it", lines(files("netbench", ".txt", ".sql")), None),
        ("netbench/, files", len(python), 370),
        (
            "trunk",
            sum(lines(of_rooms(names)) for names, _ in TRUNK.values()),
            35_700 + REQUESTS["netbench"] + PACKAGES["netbench"],
        ),
        ("native/src", lines(files("native/src", ".c", ".h")), 18_500 + REQUESTS["native"]),
        (
            "tests/, lines of Python",
            lines(files("tests", ".py")),
            35_000 + REQUESTS["tests"] + PACKAGES["tests"],
        ),
        ("  and of expected texts", lines(files("tests", ".txt", ".json")), None),
        (
            "native/tests",
            lines(files("native/tests", ".c", ".h")),
            4_500 + REQUESTS["native/tests"],
        ),
        (
            "tools/",
            lines(files("tools", ".py", ".c", ".h", ".sh")),
            3_200 + LOOPS + REQUESTS["tools"] + PACKAGES["tools"],
        ),
        ("modules at the top of netbench/", len(list((ROOT / "netbench").glob("*.py"))), 9),
        ("files that share a basename", shared_names(python), 50),
        *((f"  {room}", lines(of_rooms(names)), most) for room, (names, most) in rooms.items()),
    ]


if __name__ == "__main__":
    for what, today, most in table():
        of = "" if most is None else f" {most:>7,}{'  over' if today > most else ''}"
        print(f"{what:34} {today:>7,}{of}")
