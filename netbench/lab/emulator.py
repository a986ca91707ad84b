"""QEMU processes: starting one for a guest, finding it again by its command line, ending it."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import itertools
import os
import select
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from netbench.errors import LabError
from netbench.lab.command import SYSTEM_FOLDERS
from netbench.lab.names import namespace_name

PROGRAM = "qemu-system-x86_64"
TUN = Path("/dev/net/tun")
# MiB, of which a guest touches what it needs; with less, the kernel's TCP limits differ from boot
# to boot
MEMORY = 1536
# No KVM: a machine that is itself a guest may offer one that stock kernels do not boot in.
MACHINE = (
    *(
        "-M",
        "pc",
        "-accel",
        "tcg,thread=multi,tb-size=64",
        "-cpu",
        "max",
        "-smp",
        "1",
        "-m",
        str(MEMORY),
    ),
    *("-nodefaults", "-no-user-config", "-display", "none"),
)
# A guest that panics reboots at once; its console keeps the panic. The kernel's self-tests of
# ciphers take a sixth of a boot.
APPEND = (
    "console=ttyS0 quiet panic=-1 tsc=reliable random.trust_cpu=on mitigations=off"
    " cryptomgr.notests"
)
_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA  # linux/if_tun.h
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
_DEADLINE = 60.0


@dataclass(frozen=True)
class Guest:
    """A guest as QEMU starts it. `port` on 127.0.0.1 is forwarded to its SSH server; `tap` is the
    tap device of its data link, in `namespace`.
    """

    lab: str
    name: str
    folder: Path  # the host's own
    port: int
    macs: tuple[str, str]
    namespace: Path
    tap: str
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
    guest: Guest, program: str, image: Path, initrd: Path, append: str, user_network: str
) -> None:
    """Start a guest; returns when the emulator runs it. Errors: LabError with QEMU's message."""
    tap = open_tap(guest.namespace, guest.tap)
    try:
        argv = [program, *_arguments(guest, tap, user_network)]
        argv += [
            "-kernel",
            str(image),
            "-initrd",
            str(initrd),
            "-append",
            f"{APPEND} {append}".strip(),
        ]
        environment = {"PATH": os.pathsep.join(SYSTEM_FOLDERS), "LC_ALL": "C"}
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_DEADLINE,
            pass_fds=(tap,),  # and not the lock of labs: it would be held as long as the guest runs
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(f"{guest.name}: cannot start QEMU: {error}") from error
    finally:
        os.close(tap)
    if done.returncode:
        raise LabError(
            f"{guest.name}: QEMU does not start (exit {done.returncode}):"
            f" {' '.join(done.stderr.split())}"
        )


def _arguments(guest: Guest, tap: int, user_network: str) -> Iterator[str]:
    management, data = guest.macs
    yield from MACHINE
    yield from ("-name", guest.marker, "-daemonize", "-pidfile", str(guest.folder / "qemu.pid"))
    yield from ("-serial", f"file:{guest.console}")
    yield from ("-netdev", f"user,id=n0,{user_network},hostfwd=tcp:127.0.0.1:{guest.port}-:22")
    yield from ("-device", f"virtio-net-pci,romfile=,netdev=n0,mac={management}")
    yield from ("-netdev", f"tap,id=n1,fd={tap}")
    yield from ("-device", f"virtio-net-pci,romfile=,netdev=n1,mac={data}")
    if guest.disk:
        yield from ("-drive", f"if=virtio,format=raw,file={guest.disk}")


def open_tap(namespace: Path, name: str) -> int:
    """A descriptor of a tap device that lives in another network namespace. Errors: LabError."""
    box: list[int | OSError] = []

    def inside() -> None:  # only this thread enters the namespace
        try:
            box.append(_open_tap(namespace, name))
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


def _open_tap(namespace: Path, name: str) -> int:
    with namespace.open("rb") as space:
        if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    tap = os.open(TUN, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(
            tap,
            _TUNSETIFF,
            struct.pack("16sH22x", name.encode(), _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR),
        )
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
    return options["-name"] if options["-pidfile"].startswith(f"{folder}/") else None


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
