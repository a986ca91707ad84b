"""`make dist`: the sdist and a wheel for each machine type into dist/, from what is committed. The
same commit gives the same bytes, wherever and whenever it is built.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MACHINES = ("x86_64", "aarch64")
GLIBC = "2.28"  # manylinux_2_28: of RHEL 8, Debian 10, Ubuntu 18.10
WHEEL_MOST = 4_000_000
"""Bytes of a wheel, at most."""


def main(machines: list[str], out: Path) -> None:
    """Build the sdist, and from it wheels for these machines (left out: all)."""
    os.umask(0o022)
    when = _output("git", "log", "-1", "--format=%ct", "HEAD").strip()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": when, "TZ": "UTC"}
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="netbench-dist-") as folder:
        tree = Path(folder, "tree")
        _unpack(subprocess.check_output(["git", "archive", "HEAD"], cwd=ROOT), tree)
        _build(tree, "sdist", Path(folder), environment)
        (made,) = Path(folder).glob("netbench-*.tar.gz")
        sdist = _normal(made.read_bytes(), int(when))
        (out / made.name).write_bytes(sdist)
        for machine in machines or MACHINES:
            source = Path(folder, machine)
            _unpack(gzip.decompress(sdist), source)
            (source,) = source.iterdir()
            _wheel(source, machine, out, environment)


def _wheel(source: Path, machine: str, out: Path, environment: Mapping[str, str]) -> None:
    """A wheel for a machine type. auditwheel says what its module asks of a host's glibc."""
    target = f"{machine}-linux-gnu"
    include = sysconfig.get_path("include")
    # Debian's pyconfig.h includes that of the target; of a limited API it has nothing else.
    here = Path(include).parent / f"{_output('uname', '-m').strip()}-linux-gnu"
    headers = source / "headers"
    (headers / target).mkdir(parents=True)
    (headers / target / Path(include).name).symlink_to(here / Path(include).name)
    crossed = {
        "CC": f"{sys.executable} -m ziglang cc -target {target}.{GLIBC}",
        "CFLAGS": f"-I{headers}",
        "LDFLAGS": "-Wl,--strip-debug",
        "NETBENCH_WORKERS": " ".join(MACHINES),
        "_PYTHON_HOST_PLATFORM": f"linux-{machine}",
    }
    made = source / "made"
    _build(source, "wheel", made, {**environment, **crossed})
    (wheel,) = made.glob("*.whl")
    plain = made / "plain"  # without the workers, of which one is another machine's
    plain.mkdir()
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(plain / wheel.name, "w") as less:
        for name in whole.namelist():
            if "/worker-" not in name:
                lines = whole.read(name).splitlines(keepends=True)  # RECORD names each file
                less.writestr(name, b"".join(x for x in lines if b"/worker-" not in x))
    said = _output(sys.executable, "-m", "auditwheel", "show", str(plain / wheel.name))
    tag = f"manylinux_{GLIBC.replace('.', '_')}_{machine}"
    if f'"{tag}"' not in said:
        raise SystemExit(f"dist: {wheel.name} is no {tag}:\n{said}")
    tags = [sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", tag, str(wheel)]
    name = subprocess.check_output(tags, text=True, env={**environment}).strip()
    data = (made / name).read_bytes()
    if len(data) > WHEEL_MOST:
        raise SystemExit(f"dist: {name} has {len(data)} bytes, at most {WHEEL_MOST}")
    (out / name).write_bytes(data)
    print(f"{out / name}: {len(data) / 1e6:.2f} MB")


def _build(source: Path, what: str, out: Path, environment: Mapping[str, str]) -> None:
    """Run a PEP 517 build; what it prints is shown where it fails."""
    command = [sys.executable, "-m", "build", f"--{what}", "--no-isolation", "--outdir", str(out)]
    done = subprocess.run(
        [*command, str(source)], env=environment, text=True, capture_output=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"dist: {what}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def _normal(packed: bytes, when: int) -> bytes:
    """A tar.gz, in order, with one time and nobody's names."""
    plain = BytesIO()
    with (
        tarfile.open(fileobj=BytesIO(packed)) as before,
        tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as after,
    ):
        for member in sorted(before.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid = when, 0, 0
            member.uname = member.gname = ""
            member.pax_headers = {}
            after.addfile(member, before.extractfile(member) if member.isfile() else None)
    return gzip.compress(plain.getvalue(), mtime=when)


def _unpack(tar: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=BytesIO(tar)) as packed:
        packed.extractall(folder, filter="data")


def _output(*command: str) -> str:
    return subprocess.check_output(command, text=True, cwd=ROOT)


if __name__ == "__main__":
    main(sys.argv[1:], Path("dist"))
