"""Parts by GNU parallel and by Dask, in one lab: the records of one run, whatever is killed."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from netbench.fleet.part_task import LEASE, is_leased
from tests.support.local import netbench_argv, out, ran
from tests.support.paths import ROOT
from tests.support.running import stored_records, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.netns, pytest.mark.timeout(900)]
LAB = f"pt{os.getpid()}"
PARTS, RUNS = 4, 12
HOSTS = [f"h{n}" for n in range(1, 2 * PARTS + 1)]
TEXT = f"""\
netbench: 1
name: fleet
verify: off
pairs: [{", ".join(f"{{sender: h{n}, receiver: h{n + 1}}}" for n in range(1, 2 * PARTS, 2))}]
transfer: {{duration: 50ms, warmup: 5ms, congestion: cubic}}
sweep: {{send: [write, sendfile], tso: [on, off]}}
repeat: {{min: {RUNS}, max: {RUNS}}}
"""
RECIPES = (ROOT / "docs/how-to/many-controllers.md").read_text()


def netbench(
    *words: str | Path, folder: Path, check: bool = True
) -> subprocess.CompletedProcess[str]:
    done = ran(netbench_argv(words), cwd=folder, timeout=600)
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def text() -> Iterator[str]:
    """The campaign, over hosts of a lab that is made once."""
    made = out(*netbench_argv(["lab", "up", "netns", "--hosts", str(len(HOSTS)), "--name", LAB]))
    try:
        yield TEXT + made
    finally:
        out(*netbench_argv(["lab", "down", "--name", LAB]))


@pytest.fixture
def folder(tmp_path: Path, text: str) -> Iterator[Path]:
    """A folder with the campaign; every setting is at the end as at the beginning."""
    (tmp_path / "fleet.yaml").write_text(text)
    before = settings()
    assert set(before.values()) == {"on"}
    yield tmp_path
    assert settings() == before


def settings() -> dict[str, str]:
    """TSO of each host, as ethtool says."""
    said = {
        host: out("ip", "netns", "exec", f"nb-{LAB}-{host}", "ethtool", "-k", "data0")
        for host in HOSTS
    }
    found = {
        host: re.search("tcp-segmentation-offload: (\\w+)", text) for host, text in said.items()
    }
    return {host: match[1] for host, match in found.items() if match}


def timeless(record: Mapping[str, Any]) -> tuple[Any, ...]:
    keys = ("cell", "pair", "block", "boot", "factors", "status", "reason", "round", "concurrent")
    return (record["run"], *(record.get(key) for key in keys))


def whole(records: list[dict[str, Any]]) -> bool:
    """Whether each cell of each pair was measured once in each block, and nothing else was."""
    done = Counter((r["cell"], r["pair"], r["block"]) for r in records if r["status"] == "ok")
    return len(done) == 4 * PARTS * RUNS and set(done.values()) == {1}


def recipe(marker: str) -> str:
    """The block of the guide's shell code that has a text."""
    blocks = re.findall("```sh\\n(.*?)```", RECIPES, re.DOTALL)
    (found,) = [block for block in blocks if marker in block]
    return str(found).replace("python -m", f"{sys.executable} -m")


@pytest.fixture(scope="module")
def expected(text: str, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    """The records of one run."""
    alone = tmp_path_factory.mktemp("whole")
    (alone / "fleet.yaml").write_text(text)
    done = netbench("run", "fleet.yaml", "--plain", folder=alone)
    return [timeless(r) for r in stored_records(alone / done.stdout.splitlines()[-1])]


@pytest.mark.skipif(not shutil.which("parallel"), reason="needs the Debian package parallel")
def test_the_recipe_of_gnu_parallel(folder: Path, expected: list[tuple[Any, ...]]) -> None:
    (folder / "part.sh").write_text(recipe("# part.sh"))
    assert recipe("# part.sh").count("    exec ") == 2, "signals to the shell reach the controller"
    environ = {**os.environ, "HOME": str(folder)}  # where parallel asks to be cited
    done = ran(["sh", "-ec", recipe("parallel --termseq")], cwd=folder, env=environ)
    assert done.returncode == 0, done.stderr
    merged = folder / done.stdout.splitlines()[-1]
    assert [timeless(record) for record in stored_records(merged)] == expected
    again = subprocess.run(["sh", "part.sh", "2", "4"], cwd=folder, check=False)
    assert again.returncode == 0, "what is finished is left alone"


class Dask:
    """A campaign on Dask, as a user starts it."""

    def __init__(self, folder: Path, *words: str, **environ: str) -> None:
        argv = ["run", "fleet.yaml", "--engine", "dask", "--parts", str(PARTS), *words]
        self._err = (folder / "stderr").open("w+")
        self.process = subprocess.Popen(
            netbench_argv(argv),
            cwd=folder,
            env={**os.environ, **environ},
            stdout=subprocess.PIPE,
            stderr=self._err,
            text=True,
            start_new_session=True,
        )
        self._folder = folder

    def own(self, part: int) -> Path | None:
        """The folder of a part, once it is there."""
        found = list(self._folder.glob(f"results/fleet/*-parts/{part}"))
        return found[0] if found else None

    def owns(self) -> list[Path]:
        return [own for part in range(1, PARTS + 1) if (own := self.own(part))]

    def await_records(self, part: int, number: int) -> None:
        def records() -> int:
            own = self.own(part)
            files = list(own.glob("fleet/[!.]*/records.jsonl")) if own else []
            return len(stored_records(files[0].parent)) if files else 0

        wait_for(lambda: records() >= number, lambda: self.process.poll() is None, 240)

    def holders(self, part: int) -> list[int]:
        """The task's process, and the controller's, by the lease."""
        own = self.own(part)
        words = (own / LEASE).read_text().split() if own and (own / LEASE).exists() else []
        return list(map(int, words[1:]))

    def end(self) -> tuple[int, Path, str]:
        """The exit status, the merged result, and what was said."""
        answer, _ = self.process.communicate(timeout=600)
        self._err.seek(0)
        last = "".join(answer.splitlines()[-1:])
        return self.process.returncode, self._folder / last, self._err.read()


def test_dask_gives_the_records_of_one_run(folder: Path, expected: list[tuple[Any, ...]]) -> None:
    code, merged, said = Dask(folder).end()
    assert code == 0, said
    assert [timeless(record) for record in stored_records(merged)] == expected
    assert all(f"part {n}/4: run 1:" in said for n in range(1, PARTS + 1))


def tls_files(folder: Path) -> dict[str, str]:
    """Dask's configuration of new TLS files, as variables of the environment."""
    made = pytest.importorskip("distributed").Security.temporary()
    names = {"CA_FILE": "tls_ca_file"}
    for role in ("client", "scheduler", "worker"):
        names |= {
            f"{role.upper()}__{what.upper()}": f"tls_{role}_{what}" for what in ("cert", "key")
        }
    for name in set(names.values()):
        (folder / name).write_text(getattr(made, name))
    return {f"DASK_DISTRIBUTED__COMM__TLS__{k}": str(folder / name) for k, name in names.items()}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("victim", ["scheduler", "worker"])
def test_a_scheduler_or_worker_that_is_killed_leaves_no_setting(
    folder: Path, seed: int, victim: str
) -> None:
    draw = random.Random(seed)
    program = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    address = f"tls://127.0.0.1:{20000 + draw.randrange(10000)}"
    port = address.rpartition(":")[2]
    tls = tls_files(folder)
    quiet: dict[str, Any] = {
        "env": {**os.environ, **tls},
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "cwd": folder,
    }
    scheduler = subprocess.Popen(
        [*program, "--host", "tls://127.0.0.1", "--port", port, "--no-dashboard"], **quiet
    )
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-dashboard"]
    workers = [subprocess.Popen([*worker, "--nthreads", "2"], **quiet) for _ in range(2)]
    try:
        dask = Dask(folder, "--scheduler", address, **tls)
        dask.await_records(draw.randint(1, PARTS), draw.randint(0, 2 * RUNS))
        time.sleep(draw.uniform(0, 0.2))
        if victim == "worker":
            part = next(part for part in range(1, PARTS + 1) if dask.holders(part))
            os.kill(dask.holders(part)[0], signal.SIGKILL)
            code, merged, said = dask.end()
            assert code == 0, said
            assert whole(stored_records(merged))
            return
        scheduler.kill()
        code, _, said = dask.end()
        assert code == 1, said
        assert "the Dask scheduler is gone: all parts end" in said
        assert "Traceback" not in said
        assert not any(map(is_leased, dask.owns()))
        results = [result for own in dask.owns() for result in own.glob("fleet/[!.]*")]
        for result in results:
            netbench("resume", result, "--plain", folder=folder)
        netbench("merge", *results, "again", folder=folder, check=len(results) == PARTS)
        records = stored_records(folder / "again")
        assert whole(records) or len(results) < PARTS
    finally:
        for process in (scheduler, *workers):
            process.kill()
            process.wait()
