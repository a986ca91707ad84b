"""Several builds of one commit: they differ in where their code lies and in nothing else, and
guests boot them in turn. Seconds to link, minutes to compile and to measure: slow.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from netbench.kernels.compile import Told, build
from netbench.kernels.source import digest
from netbench.model import Kernel
from tests.support.linux_source import Linux

pytestmark = [pytest.mark.root, pytest.mark.guest, pytest.mark.slow]

TOLD = Told(lambda line: None, lambda line: None)
HOLDS_THE_IMAGE = "arch/x86/boot/"  # objects around the compressed kernel
SYMBOL = re.compile(r"([0-9a-f]+) (\w) (\S+)")


class Built:
    """A build, with the hashes of the objects that it was linked from."""

    def __init__(self, linux: Linux, kernel: Kernel) -> None:
        self.place = build(kernel, TOLD)
        (objects,) = (linux.cache / "netbench" / "trees").glob("*/objects")
        self.objects = {
            str(file.relative_to(objects)): digest(file)
            for file in objects.rglob("*.o")
            if not file.name.startswith(".") and HOLDS_THE_IMAGE not in str(file)
        }
        (system_map,) = self.place.glob("tar-install/boot/System.map-*")
        lines = map(SYMBOL.fullmatch, system_map.read_text().splitlines())
        self.symbols = [(line[1], line[2], line[3]) for line in lines if line]
        (self.image,) = self.place.glob("tar-install/boot/vmlinuz-*")

    def addresses(self, kinds: str) -> list[tuple[str, str]]:
        return sorted((name, at) for at, kind, name in self.symbols if kind in kinds)

    def initcalls(self) -> list[str]:
        return [name for _, _, name in self.symbols if name.startswith("__initcall__")]


def test_two_builds_of_one_commit_differ_in_their_layout_alone(
    linux: Linux, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(linux.cache))
    named = {"git": str(linux.place), "rev": "base", "config": "tinyconfig", "fragment": "lab"}
    kernel = Kernel("k", layouts=2, **named)  # type: ignore[arg-type]
    own = build(kernel, TOLD)
    assert own == build(kernel.each[0], TOLD)
    kept = (linux.cache / "netbench" / "built").glob("*-layout*")
    new = 1 + max((int(place.name.rpartition("layout")[2]) for place in kept), default=0)
    first, second = (Built(linux, replace(kernel, layouts=1, layout=new + at)) for at in range(2))
    assert len({own, first.place, second.place}) == 3
    assert len(first.objects) > 1000
    assert first.objects == second.objects
    assert first.image.name == second.image.name
    assert first.image.read_bytes() != second.image.read_bytes()
    code, again = (dict(each.addresses("tT")) for each in (first, second))
    assert code.keys() == again.keys()
    moved = sum(code[name] != again[name] for name in code)
    print(f"{moved} of {len(code)} functions moved, {len(first.objects)} objects are equal")
    assert moved > len(code) / 2
    assert first.initcalls() == second.initcalls()
    assert len(first.initcalls()) > 100


def test_guests_boot_the_builds_of_a_kernel_in_turn(
    linux: Linux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same two builds under two names are no better than each other. Of the letter's metrics one
    in twenty would be by an interval of 95%.
    """
    kernel = f"{{git: {linux.place}, rev: base, builds: 2}}"
    file = tmp_path / "aa.yaml"
    file.write_text(
        "netbench: 1\nname: aa\nlab: qemu\nhosts: {snd: {}, rcv: {}}\n"
        f"kernels: {{base: {kernel}, again: {kernel}}}\n"
        "transfer: {receive: trunc, chunk: 64K, congestion: cubic, duration: 300ms,"
        " warmup: 100ms}\n"
        "sweep: {kernel: [base, again]}\ncompare: {factor: kernel, baseline: base}\n"
        "repeat: {min: 8, max: 8, boots: 4, confidence: 99.9%}\n"
    )
    done = linux.netbench(tmp_path, "run", str(file))
    assert done.returncode == 0, done.stderr
    (result,) = (tmp_path / "results").glob("*/*")
    entries = json.loads((result / "facts.json").read_text())["hosts"]["snd"]
    ran = [(each["on"], each["build"]) for each in entries if each.get("on")]
    assert sorted(ran) == [(name, at) for name in ("again", "base") for at in (1, 1, 2, 2)]
    journal = [json.loads(line) for line in (result / "journal.jsonl").open()]
    told = [each["kernel"] for each in journal if each["kind"] == "boot" and each["host"] == "snd"]
    assert told[:8] == [f"{name}#{build}" for name, build in ran]
    named = {"git": str(linux.place), "rev": "base", "config": "tinyconfig", "fragment": "lab"}
    monkeypatch.setenv("XDG_CACHE_HOME", str(linux.cache))
    built = [build(each, TOLD) for each in Kernel("k", layouts=2, **named).each]  # type: ignore[arg-type]
    images = [digest(next(place.glob("tar-install/boot/vmlinuz-*"))) for place in built]
    started = {digest(file) for file in (linux.cache / "netbench").glob("lab/kernels/*/image")}
    assert len({*images} & started) == 2
    letter = linux.netbench(tmp_path, "report", str(result), "--letter")
    assert letter.returncode == 0, letter.stderr
    print(letter.stdout)
    assert "2 builds x 2 boots x 2 blocks" in " ".join(letter.stdout.split())
    assert "inconclusive" in letter.stdout
    assert not re.search(r"  (better|worse)\*?$", letter.stdout, re.MULTILINE)
    records = [json.loads(line) for line in (result / "records.jsonl").open()]
    assert {record["status"] for record in records} == {"ok"}
