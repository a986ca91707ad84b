"""QEMU processes: starting one for a guest, finding it again by its command line, ending it."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import itertools
import os
import re
import select
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from netbench.base.errors import LabError
from netbench.lab.accelerator import Accelerator
from netbench.lab.command import SYSTEM_FOLDERS
from netbench.lab.names import namespace_name

PROGRAM = "qemu-system-x86_64"
TUN = Path("/dev/net/tun")
_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA  # linux/if_tun.h
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR, _IFF_MULTI_QUEUE = 0x0002, 0x1000, 0x4000, 0x0100
_DEADLINE = 60.0
_CPU_THREAD = re.compile(r"CPU (\d+)/")  # as `debug-threads=on` calls it


@dataclass(frozen=True)
class Guest:
    """A guest as QEMU starts it. `port` on 127.0.0.1 is forwarded to its SSH server; `tap` is the
    tap device of its data link, in `namespace`; `number` is its place in the lab, from 0.
    """

    lab: str
    name: str
    folder: Path  # the host's own
    port: int
    macs: tuple[str, str]
    namespace: Path
    tap: str
    number: int
    accelerator: Accelerator
    disk: Path | None = None

    @property
    def marker(self) -> str:
        return namespace_name(self.lab, self.name)

    @property
    def console(self) -> Path:
        return self.folder / "console"


@dataclass(frozen=True)
class Running:
    """An emulator that runs."""

    pid: int
    name: str


def start(
    guest: Guest,
    program: str,
    image: Path,
    initrd: Path,
    append: str,
    user_network: str,
    held: Iterable[int] = (),
) -> None:
    """Start a guest; returns when the emulator runs it, CPUs of its own pinned.
    The emulator inherits the descriptors `held`. Errors: LabError with QEMU's message.
    """
    with contextlib.ExitStack() as stack:
        taps = []
        for _ in range(queues := guest.accelerator.queues(guest.number)):
            taps.append(open_tap(guest.namespace, guest.tap, queues > 1))
            stack.callback(os.close, taps[-1])
        argv = [program, *_arguments(guest, taps, user_network)]
        argv += ["-kernel", str(image), "-initrd", str(initrd)]
        argv += ["-append", f"{guest.accelerator.append} {append}".strip()]
        # not the lock of labs: it would be held while the guest runs
        _run(guest.name, argv, [*taps, *held])
    if own_cpus := guest.accelerator.of(guest.number):
        _pin(guest, own_cpus)


def _run(name: str, argv: Sequence[str], inherited: Sequence[int]) -> None:
    """Run QEMU until it is in the background. Errors: LabError."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_DEADLINE,
            pass_fds=inherited,
            env={"PATH": os.pathsep.join(SYSTEM_FOLDERS), "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(f"{name}: cannot start QEMU: {error}") from error
    if done.returncode:
        raise LabError(
            f"{name}: QEMU does not start (exit {done.returncode}): {' '.join(done.stderr.split())}"
        )


def _pin(guest: Guest, cpus: Sequence[int]) -> None:
    """Run each of a guest's CPUs on one of `cpus`, and the emulator's other threads on any of them
    (sched_setaffinity(2)): threads are named after what they run. Errors: LabError.
    """
    pinned = 0
    try:
        tasks = Path(f"/proc/{(guest.folder / 'qemu.pid').read_text().strip()}/task")
        for task in tasks.iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
                number = _CPU_THREAD.match((task / "comm").read_text())
                own = {cpus[int(number[1])]} if number else cpus
                os.sched_setaffinity(int(task.name), own)
                pinned += bool(number)
    except OSError as error:
        raise LabError(f"{guest.name}: cannot pin its CPUs: {error}") from error
    if pinned < len(cpus):
        raise LabError(f"{guest.name}: QEMU names {pinned} threads of {len(cpus)} CPUs")


def _arguments(guest: Guest, taps: Sequence[int], user_network: str) -> Iterator[str]:
    management, data = guest.macs
    yield from guest.accelerator.machine(guest.number)
    yield from ("-name", f"{guest.marker},debug-threads=on")
    yield from ("-daemonize", "-pidfile", str(guest.folder / "qemu.pid"))
    yield from ("-serial", f"file:{guest.console}")
    yield from ("-netdev", f"user,id=n0,{user_network},hostfwd=tcp:127.0.0.1:{guest.port}-:22")
    yield from ("-device", f"virtio-net-pci,romfile=,netdev=n0,mac={management}")
    yield from _data_link(taps, data, guest.accelerator.vhost)
    if guest.disk:
        yield from ("-drive", f"if=virtio,format=raw,file={guest.disk}")


def _data_link(taps: Sequence[int], mac: str, vhost: bool) -> Iterator[str]:
    """A virtio NIC with a queue for each descriptor of its tap; each pair of queues has two
    vectors, and configuration and control one each.
    """
    several = len(taps) > 1
    descriptors = f"fds={':'.join(map(str, taps))}" if several else f"fd={taps[0]}"
    yield from ("-netdev", f"tap,id=n1,{descriptors}{',vhost=on' if vhost else ''}")
    queues = f",mq=on,vectors={2 * len(taps) + 2}" if several else ""
    yield from ("-device", f"virtio-net-pci,romfile=,netdev=n1,mac={mac}{queues}")


def open_tap(namespace: Path, name: str, multi_queue: bool = False) -> int:
    """A descriptor of a tap device that lives in another network namespace, and of another queue
    of it where it has several. Errors: LabError.
    """
    box: list[int | OSError] = []

    def inside() -> None:  # only this thread enters the namespace
        try:
            box.append(_open_tap(namespace, name, multi_queue))
        except OSError as error:
            box.append(error)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    if isinstance(box[0], OSError):
        raise LabError(
            f"cannot open the tap device {name} in {namespace}: {box[0].strerror}"
        ) from box[0]
    return box[0]


def _open_tap(namespace: Path, name: str, multi_queue: bool) -> int:
    with namespace.open("rb") as space:
        if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    tap = os.open(TUN, os.O_RDWR | os.O_CLOEXEC)
    flags = _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR | (_IFF_MULTI_QUEUE if multi_queue else 0)
    try:
        fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
    except OSError:
        os.close(tap)
        raise
    return tap


def running(lab: str, folder: Path, host: str = "") -> list[Running]:
    """The emulators of a lab, or of one of its hosts, by their command lines, which name lab, host
    and folder.
    """
    marker = namespace_name(lab, host)
    emulators = []
    for entry in Path("/proc").iterdir():
        name = _guest(entry, folder) if entry.name.isdecimal() else None
        if name is not None and (name == marker or (not host and name.startswith(marker))):
            emulators.append(Running(int(entry.name), name))
    return emulators


def _guest(process: Path, folder: Path) -> str | None:
    """The name that a process has as an emulator of a lab in that folder; None of any other
    process.
    """
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    if Path(words[0]).name != PROGRAM or "-name" not in words or "-pidfile" not in words:
        return None
    options = dict(itertools.pairwise(words))
    name = options["-name"].partition(",")[0]
    return name if options["-pidfile"].startswith(f"{folder}/") else None


def end(lab: str, folder: Path, host: str = "") -> list[Running]:
    """Kill the emulators of a lab, or of one of its hosts, and wait until they are gone. Errors:
    LabError.
    """
    ended: dict[int, Running] = {}
    deadline = time.monotonic() + _DEADLINE
    while left := running(lab, folder, host):
        if time.monotonic() > deadline:
            raise LabError(
                f"cannot stop the emulators {', '.join(str(one.pid) for one in left)}; kill them"
                " and repeat `lab down`"
            )
        for one in left:
            ended[one.pid] = one
            _kill(one, folder, deadline - time.monotonic())
    return list(ended.values())


def _kill(one: Running, folder: Path, seconds: float) -> None:
    """Kill a process, if it is still the emulator that was found, and wait until it is gone."""
    with contextlib.suppress(ProcessLookupError):
        process = os.pidfd_open(one.pid)
        try:
            if _guest(Path(f"/proc/{one.pid}"), folder) == one.name:
                signal.pidfd_send_signal(process, signal.SIGKILL)
                select.select((process,), (), (), max(seconds, 0))
        finally:
            os.close(process)
