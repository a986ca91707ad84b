"""From a `Kernel` whose source is on this machine to its files: release, image, modules."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import struct
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from netbench.base.errors import RequestError
from netbench.base.names import RELEASE
from netbench.base.opening import open_file, read_inside, walk
from netbench.base.ownership import own_users
from netbench.kernels.revision import run_to_end
from netbench.model import Kernel

PACKAGE = "linux-image-*.deb"
ARCHIVE = re.compile(r"linux-.+\.tar(\.(gz|bz2|xz|zst|lz4))?\Z")
_DEBUG = "-dbg_"
_RELEASE_FILE = "include/config/kernel.release"
_TAR_INSTALL = "tar-install"
_MAGIC_AT, _MAGIC = 0x202, b"HdrS"
_VERSION_AT, _SETUP_AT = 0x20E, 0x200
_HEADER = 0x210
_VERSION_MAX = 256
_TREE_REMEDY = "build one there with `make bindeb-pkg` or `make tar-pkg`"
_CHUNK = 1 << 20
SYSTEM_FOLDERS = "/usr/sbin:/usr/bin:/sbin:/bin"


class Unpacked(NamedTuple):
    """A kernel as files: `image` (a bzImage), `modules` (the folder that holds `modules.dep`; None:
    it has no modules). `content`: the digest of what they were taken from.
    """

    release: str
    image: Path
    modules: Path | None
    content: str


def on_this_machine(kernel: Kernel) -> bool:
    """Whether a kernel's source is a package or a build tree of this machine."""
    return bool(kernel.deb or kernel.tree)


def locate(kernel: Kernel) -> Path:
    """The file (or, of a tree, perhaps the folder) that a kernel comes from. Errors: RequestError
    when there is none.
    """
    if kernel.deb:
        return _file(kernel, "deb", kernel.deb)
    if kernel.tree:
        return _output(kernel, Path(os.path.expanduser(kernel.tree)))
    if kernel.image:
        return _file(kernel, "image", kernel.image)
    raise RequestError(f"kernel {kernel.name}: expected deb, tree or image, a file of this machine")


def digest(place: Path) -> str:
    """SHA-256, in hex, of a file, or of a folder's names and files. Errors: RequestError."""
    total = hashlib.sha256()
    if not (place.is_dir() or place.is_file()):
        raise RequestError(f"cannot read {place}: it is no regular file")
    try:
        for file in _regular(place) if place.is_dir() else (place,):
            total.update(f"{file.relative_to(place)}\0".encode() if file != place else b"")
            with file.open("rb") as raw:
                for part in iter(lambda: raw.read(_CHUNK), b""):
                    total.update(part)
    except OSError as error:
        raise RequestError(f"cannot read {error.filename}: {error.strerror}") from error
    return total.hexdigest()


def unpack(kernel: Kernel, folder: Path) -> Unpacked:
    """Unpack a kernel's files into an empty folder that others cannot enter. Of a package, or of
    what a build has installed, only regular files are taken: whoever made it may have put links,
    devices and indices of modules there that lead elsewhere, and may exchange it meanwhile.

    Errors: RequestError with what is missing or not a kernel, and what to do.
    """
    place = locate(kernel)
    unpacked, root, own = folder / "made", folder / "root", folder / place.name
    try:
        if place.is_dir():
            _take(place, root)
            return _within(kernel, root, digest(root))
        shutil.copyfile(place, own)
        content = digest(own)
        if place.suffix == ".deb":
            _run(kernel.name, own, ("dpkg-deb", "-x", str(own), str(unpacked)), "dpkg")
        elif ARCHIVE.match(place.name):
            unpacked.mkdir()
            argv = ("tar", "-x", "--no-same-owner", "-f", str(own), "-C", str(unpacked))
            _run(kernel.name, own, argv, "tar xz-utils zstd")
        else:
            image_release(place, kernel.name)  # told by its own name where it is none
            return Unpacked(image_release(own, kernel.name), own, None, content)
        own.unlink()
        _take(unpacked, root)
    except OSError as error:
        raise RequestError(
            f"kernel {kernel.name}: cannot take {error.filename}: {error.strerror}"
        ) from error
    return _within(kernel, root, content)


def _take(made: Path, root: Path) -> None:
    """Copy regular files, and nothing else. Errors: OSError."""
    for file in _regular(made):
        inner = file.relative_to(made)
        (root / inner).parent.mkdir(parents=True, exist_ok=True)
        with open_file(file, len(inner.parts)) as raw, (root / inner).open("xb") as copy:
            shutil.copyfileobj(raw, copy)


def image_release(image: Path, name: str = "") -> str:
    """The release that a bzImage says it is (Documentation/arch/x86/boot.rst, kernel_version).
    Errors: RequestError.
    """
    label = f"kernel {name}: " if name else ""
    try:
        with image.open("rb") as raw:
            header = raw.read(_HEADER)
            whole = len(header) == _HEADER
            raw.seek(_SETUP_AT + struct.unpack_from("<H", header, _VERSION_AT)[0] if whole else 0)
            version = raw.read(_VERSION_MAX)
    except OSError as error:
        raise RequestError(f"{label}cannot read {image}: {error.strerror}") from error
    words = version.partition(b"\0")[0].decode(errors="replace").split()
    if header[_MAGIC_AT : _MAGIC_AT + 4] != _MAGIC or not (
        words and re.fullmatch(RELEASE, words[0])
    ):
        raise RequestError(
            f"{label}{image} is not an x86 kernel image; expected a bzImage, such as"
            " /boot/vmlinuz-RELEASE"
        )
    return words[0]


def _file(kernel: Kernel, key: str, path: str) -> Path:
    place = Path(os.path.expanduser(path))
    if not place.is_file():
        raise RequestError(
            f"kernel {kernel.name}: {place} does not exist on this machine; correct `{key}:`"
        )
    return place


def _regular(folder: Path) -> Iterator[Path]:
    return (file for file in walk(folder) if stat.S_ISREG(file.lstat().st_mode))


def _output(kernel: Kernel, tree: Path) -> Path:
    """The newest package, archive or installed folder that a build of this user's, root's or the
    tree's owner has made; of the tree's own release, if one has it.
    """
    if not tree.is_dir():
        raise RequestError(
            f"kernel {kernel.name}: {tree} does not exist on this machine; correct `tree:`"
        )
    release = _tree_release(tree)
    owners, outputs = {tree.stat().st_uid, *own_users()}, _outputs(tree, beside=bool(release))
    every = [one for one in outputs if _DEBUG not in one.name and one.lstat().st_uid in owners]
    own = [place for place in every if not release or _is_of(place, release)]
    best = max(own, key=lambda place: place.stat().st_mtime_ns, default=None)
    if best is None:
        raise RequestError(
            f"kernel {kernel.name}: no linux-image-*.deb, linux-*.tar* or"
            f" {_TAR_INSTALL}{f' of {release}' if release else ''} in"
            f" {tree}{' or debian/files of it' if release else ''}; {_TREE_REMEDY}"
        )
    return best


def _is_of(place: Path, release: str) -> bool:
    """Whether an output of a build is of that release."""
    if place.is_dir():
        return (place / "boot" / f"vmlinuz-{release}").exists()
    names = (f"linux-image-{release}_", f"linux-{release}-", f"linux-{release}.tar")
    return place.name.startswith(names)


def _tree_release(tree: Path) -> str:
    """The release of a tree that has been built, or "" of any other folder."""
    try:
        return read_inside(tree / _RELEASE_FILE, 3).decode(errors="replace").strip()
    except OSError:
        return ""


def _outputs(tree: Path, beside: bool) -> Iterator[Path]:
    yield from tree.glob(PACKAGE)
    with suppress(OSError):  # bindeb-pkg has those it makes beside the tree in a list
        text = read_inside(tree / "debian" / "files", 2).decode(errors="replace") * beside
        named = {line.partition(" ")[0] for line in text.splitlines()}
        yield from (each for each in tree.resolve().parent.glob(PACKAGE) if each.name in named)
    yield from (place for place in tree.iterdir() if ARCHIVE.match(place.name))
    if (tree / _TAR_INSTALL / "boot").is_dir():
        yield tree / _TAR_INSTALL


def _within(kernel: Kernel, root: Path, content: str) -> Unpacked:
    """The kernel in an unpacked root of regular files, which is ours to write to."""
    images = sorted((root / "boot").glob("vmlinuz*"))
    if len(images) != 1:
        many = ", ".join(image.name for image in images) or "none"
        raise RequestError(
            f"kernel {kernel.name}: expected one boot/vmlinuz-RELEASE in {locate(kernel)}, found"
            f" {many}"
        )
    release = image_release(images[0], kernel.name)
    for base in (root, root / "usr"):
        modules = base / "lib" / "modules" / release
        if modules.is_dir():
            index(modules, kernel.name, release)
            return Unpacked(release, images[0], modules, content)
    return Unpacked(release, images[0], None, content)


def index(modules: Path, name: str, release: str) -> None:
    """Make `modules.dep` and its like (depmod(8)) in a folder of modules. Errors: RequestError."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch, "usr", "lib", "modules")
        place.mkdir(parents=True)
        (place / release).symlink_to(modules.absolute())
        Path(scratch, "lib").symlink_to("usr/lib")  # depmod looks in either, by its version
        _run(name, modules, ("depmod", "-b", scratch, release), "kmod")


def _run(name: str, place: Path, argv: Sequence[str], packages: str) -> None:
    program = shutil.which(argv[0], path=SYSTEM_FOLDERS)
    if program is None:
        raise RequestError(
            f"kernel {name}: {argv[0]} is not installed on this machine; on Debian: apt install"
            f" {packages}"
        )
    what = f"kernel {name}: {argv[0]} of {place}"
    environment = {"PATH": SYSTEM_FOLDERS, "LC_ALL": "C"}
    done = run_to_end((program, *argv[1:]), environment, what)
    if done.returncode:
        output = " ".join((done.stderr or done.stdout).split()) or "it printed nothing"
        raise RequestError(f"{what} failed (exit {done.returncode}): {output}")
