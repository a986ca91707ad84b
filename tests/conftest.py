"""Shared by the tests that run campaigns: small ones, on this machine, with real workers."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings
from xdist.scheduler import LoadFileScheduling

from netbench import campaign
from netbench.model import Campaign
from tests.support.disks import tmpfs_on
from tests.support.local import ADDRESS, FAR, NEAR, SMALL, Command, call, out, ran
from tests.support.needs import mark_users, needs, skip_without
from tests.support.outside import OUTSIDE, outside
from tests.support.paths import ROOT

# No deadline, since other programs run beside the tests. `make test-slow` searches deep, in all.
settings.register_profile("quick", deadline=None, max_examples=20)
settings.register_profile("deep", deadline=None, max_examples=400)
CLONE_NEWNET, CLONE_NEWUSER = 0x40000000, 0x10000000
# The folders whose files take long, the longest first.
LONGEST = ("guests", "cli", "faults", "hosts", "campaigns", "engine")
GUESTS = "tests/guests/"
FETCH = """\
import sys
from netbench.lab import command, debian, qemu
from netbench.lab.lab import LabSpec
from netbench.model import Kernel
spec = LabSpec("qemu", "fetch", ("a",), None, None, kernels=tuple(Kernel(name, release=name) for name in ("6.1", "6.12")))
tools = command.find(qemu.QEMU.needs(spec))
qemu.prepare(spec, tools)
for package in sys.argv[1:]:
    debian.unpacked(package, tools)
"""


def pytest_configure(config: pytest.Config) -> None:
    """For each process a network namespace, since campaigns lock theirs, and what users have."""
    settings.load_profile("deep" if config.getoption("markexpr") == "slow" else "quick")
    for name in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(name, None)
    # Where netbench's key is, and its campaigns: each that begins looks at all of them.
    state = os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="netbench-tests-state-")
    config.add_cleanup(partial(shutil.rmtree, state, ignore_errors=True))
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)
    if OUTSIDE not in os.environ:
        os.environ[OUTSIDE] = f"/proc/{os.getpid()}/fd/{os.open('/proc/self/ns/net', os.O_RDONLY)}"
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWNET) and not libc.unshare(CLONE_NEWUSER | CLONE_NEWNET):
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket() as any_socket:  # loopback up, as `ip link set lo up` does
        up = struct.pack("16sH14x", b"lo", 0x1 | 0x40)
        with contextlib.suppress(OSError):
            fcntl.ioctl(any_socket, 0x8914, up)


class ByFile(LoadFileScheduling):
    """A file's tests are in one process: its fixtures are made once; so are those of guests."""

    def _split_scope(self, nodeid: str) -> str:
        return GUESTS if nodeid.startswith(GUESTS) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)  # before -m selects by markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    deep = config.getoption("markexpr") == "slow"
    for item in items:
        mark_users(item)
        if deep and isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
            item.add_marker("slow")
    places = [ROOT / "tests" / name for name in LONGEST]
    items.sort(
        key=lambda item: [not item.path.is_relative_to(place) for place in places]
    )  # else one process ends with them while the others have nothing left


def pytest_runtest_setup(item: pytest.Item) -> None:
    skip_without(item)


@pytest.fixture
@needs("root")
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    with tmpfs_on(tmp_path / "disk", "2m") as folder:
        yield folder


@pytest.fixture(scope="module", autouse=True)
def as_a_namespace_begins() -> None:
    """TCP keeps what it learns, whatever the modules before have left."""
    with contextlib.suppress(OSError):  # without root
        Path("/proc/sys/net/ipv4/tcp_no_metrics_save").write_text("0")


@pytest.fixture
def small() -> Campaign:
    """Two cells, two runs each, of some tens of milliseconds."""
    return campaign.parse(SMALL, "small.yaml")


@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    """The same as a file."""
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    return file


@pytest.fixture(scope="module")
@needs("netns")
def interface() -> Iterator[str]:
    """One end of a veth with ADDRESS, in the tests' namespace; the other, `FAR`, has none."""
    made = ran(f"ip link add {NEAR} numrxqueues 4 numtxqueues 4 type veth peer name {FAR}".split())
    if "Unknown device type" in made.stderr or "not supported" in made.stderr:
        pytest.skip(f"this kernel has no veth: {made.stderr.strip()}")
    assert made.returncode == 0, made.stderr  # such as one that an earlier test left
    for line in (
        f"address add {ADDRESS}/24 dev {NEAR}",
        f"link set {NEAR} up",
        f"link set {FAR} up",
    ):
        out("ip", *line.split())
    yield NEAR
    out("ip", "link", "delete", NEAR)


def _fetch(*packages: str) -> None:
    """Bring what guests are made of into the cache, from outside of the tests' network."""
    if os.geteuid() != 0:
        return
    argv = outside(sys.executable, "-c", FETCH, *packages)
    with (Path(tempfile.gettempdir()) / "netbench-tests-fetch").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        print(done.stderr)


@pytest.fixture(scope="session")
@needs("guest")
def fetched() -> None:
    """Debian's kernels, and what their guests run."""
    _fetch()


@pytest.fixture(scope="session")
def fetched_grub(fetched: None) -> None:
    """And the parts of GRUB."""
    _fetch("grub-common", "grub2-common", "grub-pc-bin")


@pytest.fixture
def netbench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command line as a user would, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return call


@pytest.fixture
def whole_kernel() -> Iterator[None]:
    """For campaigns that set what all namespaces have: they refuse each other, here as anywhere."""
    with (Path(tempfile.gettempdir()) / "netbench-tests-kernel").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
