"""Hosts that are guests of QEMU under software emulation, each with a kernel of its own.

    root namespace                        nb-LAB-switch                guest
    127.0.0.1:PORT - QEMU's user network ----------------------------  mgmt0   SSH
                                          [bridge data] data1 (tap) -  data0   data

A rate or a delay is on the switch's ports, towards each guest. A guest's root is in its memory:
what it writes is gone with its next boot, but for /boot of a lab with disks, which also holds the
lab's kernels as installed ones (vmlinuz-RELEASE, initrd.img-RELEASE).
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from netbench import kernels
from netbench.errors import LabError, LabRefused
from netbench.lab import command as programs
from netbench.lab import debian, emulator, guest, modules, netns, sshd, state
from netbench.lab.base import SWITCH, Kind, Lab, LabHost, LabKernel, LabSpec, namespace_name
from netbench.lab.command import Tools, together
from netbench.model import Kernel
from netbench.units import parse_size

LOCAL = "127.0.0.1"
USER_NETWORK = "restrict=on,ipv6=off"
_PORTS = (20000, 32000)  # below what Linux hands out by itself
_NEEDS = ("ip", "ssh", "ssh-keygen", emulator.PROGRAM, "depmod", *guest.NEEDS)
_DISK_NEEDS = ("mke2fs",)
_DISK_SPARE = parse_size("64M")
_LOGIN_SECONDS = 120.0
_SILENT_SECONDS = 20.0  # a kernel may have no console there
_ATTEMPT_SECONDS = 4.0
_POLL = 0.1
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b.|[^\x20-\x7e\t\u00a0-\U0010ffff]")
_TAIL = 64 * 1024


def _needs(spec: LabSpec) -> Sequence[str]:
    return (*_NEEDS, *(_DISK_NEEDS if spec.disk else ()), *netns.shaping(spec))


def prepare(spec: LabSpec, tools: Tools) -> LabSpec:
    """Find or build everything that the guests start from. Errors: LabRefused; RequestError about a
    kernel's files.
    """
    if not emulator.TUN.exists():
        raise LabRefused(f"guests need {emulator.TUN}, which is not here: modprobe tun")
    userland = guest.userland(tools)
    asked = spec.kernels or (_own_kernel(tools),)
    ready = {kernel.name: build(kernel, userland, tools) for kernel in asked}
    return replace(spec, ready=ready, versions=userland.versions | {"qemu": _version(tools)})


def _own_kernel(tools: Tools) -> Kernel:
    release = debian.newest(tools)
    return Kernel(debian.series(release), release=release)


def _version(tools: Tools) -> str:
    return tools.run((emulator.PROGRAM, "--version")).splitlines()[0]


def build(kernel: Kernel, userland: guest.Userland, tools: Tools) -> LabKernel:
    """A kernel's image and first root, from the cache if they are there. Errors: LabRefused,
    RequestError.
    """
    if kernel.release:
        kernel = replace(kernel, deb=str(debian.kernel(kernel.release, tools)))
    place = kernels.found(kernel)
    parts = _parts(kernel, place)
    release = (parts / "release").read_text()
    made = sha256(userland.archive + (parts / "modules.cpio").read_bytes())
    given = Path(kernel.initrd).expanduser() if kernel.initrd else None
    if given:
        made.update(_read(given, kernel))
    root = debian.cache() / "roots" / f"{made.hexdigest()}.cpio"
    if not root.exists():
        root.parent.mkdir(exist_ok=True)
        _write(
            root,
            (_read(given, kernel) if given else b"")
            + userland.archive
            + (parts / "modules.cpio").read_bytes(),
        )
    return LabKernel(kernel.name, release, parts / "image", root, kernel.append, str(place))


def _read(file: Path, kernel: Kernel) -> bytes:
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise LabRefused(
            f"kernel {kernel.name}: cannot read its initrd {file}: {error.strerror}"
        ) from error
    return raw + b"\0" * (-len(raw) % 512)


def _parts(kernel: Kernel, place: Path) -> Path:
    """A folder of the cache with `image`, `release` and `modules.cpio`, by the content that they
    are made from.
    """
    kept = debian.cache() / "kernels" / f"{kernels.digest(place)[:32]}-{modules.RECIPE}"
    if kept.exists():
        return kept
    kept.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
        raw, draft = Path(scratch, "raw"), Path(scratch, "draft")
        raw.mkdir()
        draft.mkdir(mode=0o755)
        found = kernels.unpack(kernel, raw)
        shutil.copyfile(found.image, draft / "image")
        (draft / "modules.cpio").write_bytes(
            modules.pack(found.modules, found.release) if found.modules else b""
        )
        (draft / "release").write_text(found.release)
        with contextlib.suppress(OSError):  # another lab was faster
            draft.rename(kept)
    return kept


def _write(file: Path, content: bytes) -> None:
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    draft.write_bytes(content)
    draft.rename(file)


def make(spec: LabSpec, folder: Path, tools: Tools) -> Lab:
    """Make keys, the data link and the guests. Errors: LabError; what was made until then is left
    to `remove`.
    """
    ports = _free_ports(len(spec.hosts))
    hosts = {
        name: _host(spec.name, i, name, port)
        for i, (name, port) in enumerate(zip(spec.hosts, ports, strict=True), 1)
    }
    config = sshd.keys(folder, hosts.values(), tools)
    lab = Lab(spec.name, spec.kind, folder, hosts, config, dict(spec.ready), dict(spec.versions))
    _links(spec, tools)
    first = next(iter(lab.kernels.values()))
    together(lambda host: _make_host(lab, host, first, spec.disk, tools), hosts.values())
    together(lambda host: await_login(lab, host, tools), hosts.values())
    return lab


def _alive(folder: Path, host: str) -> bool:
    return bool(emulator.running(folder.name, folder, host))


QEMU = Kind(_needs, make, _alive, prepare)


def _free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on. Errors: LabError."""
    found: list[int] = []
    for port in random.sample(range(*_PORTS), _PORTS[1] - _PORTS[0]):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((LOCAL, port))
            found.append(port)
        if len(found) == count:
            return found
    raise LabError(f"fewer than {count} ports of {LOCAL} are free in {_PORTS[0]}..{_PORTS[1]}")


def _host(lab: str, number: int, name: str, port: int) -> LabHost:
    data4, data6 = netns.data_addresses(number)
    return LabHost(
        name, f"{lab}-{name}", data4, data6, netns.DATA, namespace_name(lab, SWITCH), LOCAL, port
    )


def _links(spec: LabSpec, tools: Tools) -> None:
    switch = namespace_name(spec.name, SWITCH)
    ports = [_tap(i) for i in range(1, len(spec.hosts) + 1)]
    tools.batch(("ip",), [f"netns add {switch}"])
    netns.probe(spec, switch, tools)
    ipv6 = netns.has_ipv6()
    lines = [
        "link set lo up",
        "link add data type bridge stp_state 0 mcast_snooping 0",
        *netns.configure("data", "", ipv6),
    ]
    for port in ports:
        lines += [
            f"tuntap add dev {port} mode tap vnet_hdr",
            f"link set {port} master data",
            *netns.configure(port, "", ipv6),
        ]
    tools.batch(("ip", "-n", switch), lines)
    netns.shape_ports(spec, switch, ports, tools)


def _tap(number: int) -> str:
    return f"data{number}"


def _make_host(lab: Lab, host: LabHost, first: LabKernel, disk: bool, tools: Tools) -> None:
    if disk:
        _make_disk(lab, host, tools)
    _start(lab, host, first, tools)


def _guest(lab: Lab, host: LabHost) -> emulator.Guest:
    here = sshd.place(lab.folder, host.name)
    disk = here / "disk"
    return emulator.Guest(
        lab=lab.name,
        name=host.name,
        folder=here,
        port=host.port,
        macs=(guest.mac(lab, host, 0), guest.mac(lab, host, 1)),
        namespace=state.NAMESPACES / host.namespace,
        tap=_tap(list(lab.hosts).index(host.name) + 1),
        disk=disk if disk.exists() else None,
    )


def _start(lab: Lab, host: LabHost, kernel: LabKernel, tools: Tools) -> None:
    """Start a guest that does not run. QEMU keeps the first root mapped, so that its file is not
    needed any more.
    """
    described = _guest(lab, host)
    root = described.folder / "root.cpio"
    try:
        root.write_bytes(_root(lab, host, kernel, described.disk is not None))
        emulator.start(
            described,
            tools.paths[emulator.PROGRAM],
            kernel.image,
            root,
            kernel.append,
            USER_NETWORK,
        )
    except OSError as error:
        raise LabError(
            f"{host.name}: cannot write its first root in {described.folder}: {error.strerror}"
        ) from error
    finally:
        root.unlink(missing_ok=True)
    (described.folder / "kernel").write_text(f"{kernel.name} {kernel.release}\n")


def _root(lab: Lab, host: LabHost, kernel: LabKernel, disk: bool) -> bytes:
    try:
        return kernel.initrd.read_bytes() + guest.own(lab, host, disk)
    except FileNotFoundError as error:
        raise LabError(
            f"{error.filename} is gone from the cache: take the lab down and make it again"
        ) from error


def _make_disk(lab: Lab, host: LabHost, tools: Tools) -> None:
    """An ext4 image with every kernel of the lab as an installed one."""
    here = sshd.place(lab.folder, host.name)
    content = here / "boot"
    (content / "netbench").mkdir(parents=True)
    try:
        for kernel in lab.kernels.values():
            shutil.copyfile(kernel.image, content / f"vmlinuz-{kernel.release}")
            (content / f"initrd.img-{kernel.release}").write_bytes(
                _root(lab, host, kernel, disk=True)
            )
        size = sum(file.stat().st_size for file in content.iterdir()) * 2 + _DISK_SPARE
        image = here / "disk"
        tools.run(
            ("mke2fs", "-q", "-t", "ext4", "-d", str(content), str(image), f"{size // 1024}k")
        )
    except OSError as error:
        raise LabError(
            f"{host.name}: cannot make its disk in {here}: {error.strerror}; free some space there"
        ) from error
    finally:
        shutil.rmtree(content)


def await_login(lab: Lab, host: LabHost, tools: Tools, seconds: float = _LOGIN_SECONDS) -> None:
    """Wait until a guest runs a command over SSH. Errors: LabError with the last lines of its
    console.
    """
    deadline = time.monotonic() + seconds
    silent = time.monotonic() + _SILENT_SECONDS
    while not (
        (_has_spoken(lab, host) or time.monotonic() > silent)
        and sshd.answers(host.management, host.port, 0.5)
        and _login(lab, host, tools)
    ):
        if time.monotonic() > deadline:
            raise LabError(
                f"{host.name}: no SSH login in {seconds:.0f} s; its console's last lines:"
                f" {_said(lab, host.name)}"
            )
        if not _alive(lab.folder, host.name):
            raise LabError(
                f"{host.name}: its QEMU has ended; its console's last lines:"
                f" {_said(lab, host.name)}"
            )
        time.sleep(_POLL)


def _has_spoken(lab: Lab, host: LabHost) -> bool:
    """Whether a guest's SSH server may be there: it says so. QEMU keeps earlier connections, all
    for the guest to answer then.
    """
    try:
        return (sshd.place(lab.folder, host.name) / "console").stat().st_size > 0
    except OSError:
        return False


def _login(lab: Lab, host: LabHost, tools: Tools) -> bool:
    options = (
        "-o",
        "ConnectTimeout=2",
        "-o",
        "ServerAliveInterval=1",
        "-o",
        "ServerAliveCountMax=2",
        "-o",
        "BatchMode=yes",
    )
    try:
        return (
            tools.attempt(
                ("ssh", "-F", str(lab.ssh_config), *options, host.ssh, "true"),
                seconds=_ATTEMPT_SECONDS,
            ).returncode
            == 0
        )
    except LabError:
        return False


def _said(lab: Lab, host: str) -> str:
    return " | ".join(console(lab, host)) or "none"


def console(lab: Lab, host: str, lines: int = 20) -> list[str]:
    """The last lines of a guest's console, without control characters; none before it has said
    anything. Errors: LabRefused.
    """
    return list(_tail(sshd.place(lab.folder, _known(lab, host).name) / "console", lines))


def _tail(file: Path, lines: int) -> Iterator[str]:
    try:
        with file.open("rb") as raw:
            raw.seek(max(0, os.fstat(raw.fileno()).st_size - _TAIL))
            text = raw.read().decode(errors="replace")
    except OSError:
        return
    said = (_CONTROL.sub("", line).rstrip() for line in re.split(r"[\r\n]+", text))
    yield from [line for line in said if line][-lines:]


def _known(lab: Lab, host: str) -> LabHost:
    if host not in lab.hosts:
        raise LabRefused(f"the lab {lab.name} has no host {host}, it has {', '.join(lab.hosts)}")
    return lab.hosts[host]


def find(name: str) -> Lab:
    """A lab of guests that is up. Errors: LabRefused."""
    lab = state.read(name)
    if lab is None:
        raise LabRefused(f"no lab {name} is up; see `lab status`")
    if lab.kind != "qemu":
        raise LabRefused(
            f"the lab {name} is made of {lab.kind}, whose hosts share this machine's kernel:"
            " expected one of qemu"
        )
    return lab


def kernel_for(lab: Lab, kernel: Kernel) -> LabKernel:
    """A kernel of any source, ready to be booted by a lab's guests: one of its own, or made and
    kept in the cache.

    Errors: LabRefused, RequestError about a kernel's files.
    """
    for own in _matching(lab, kernel):
        return replace(own, name=kernel.name, append=kernel.append)
    tools = programs.find((*_NEEDS,))
    return build(kernel, guest.userland(tools), tools)


def _matching(lab: Lab, kernel: Kernel) -> Iterator[LabKernel]:
    """The lab's kernels that a release means: that of this name first."""
    fitting = [
        own
        for own in lab.kernels.values()
        if kernel.release and debian.fits(own.release, kernel.release)
    ]
    yield from sorted(
        fitting,
        key=lambda own: (own.name != kernel.name, [-part for part in debian.order(own.release)]),
    )


def boot(lab_name: str, host: str, kernel: LabKernel) -> None:
    """Stop a guest and start it on a kernel; returns when it was started, not when it answers.
    Errors: LabRefused, LabError.
    """
    with state.locked() as lock:
        lab = find(lab_name)
        tools = programs.find((emulator.PROGRAM,), lock)
        here = _known(lab, host)
        emulator.end(lab.name, lab.folder, host)
        _start(lab, here, kernel, tools)
