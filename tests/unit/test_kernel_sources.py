"""Kernels from files: packages of dpkg-deb, archives of `make tar-pkg`, images by header."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from netbench import kernels
from netbench.base.errors import RequestError
from netbench.lab import modules
from netbench.model import Kernel

RELEASE = "6.99.0-test+"
MISSING = [
    tool
    for tool in ("dpkg-deb", "depmod", "tar")
    if not shutil.which(tool, path="/usr/sbin:/usr/bin:/sbin:/bin")
]
needs_tools = pytest.mark.skipif(
    bool(MISSING), reason=f"needs {', '.join(MISSING)} (Debian: dpkg, kmod, tar)"
)


def image(release: str = RELEASE) -> bytes:
    """The head of a bzImage: what boot.rst says of `header` and `kernel_version`."""
    raw = bytearray(0x1000)
    raw[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", raw, 0x20E, 0x600 - 0x200)
    words = f"{release} (who@where) #1 SMP\0".encode()
    raw[0x600 : 0x600 + len(words)] = words
    return bytes(raw)


def root(folder: Path, base: str = "lib", release: str = RELEASE) -> Path:
    """As its build installs it, with two modules that are none to depmod; no modules.dep."""
    modules = folder / base / "modules" / release
    (modules / "kernel").mkdir(parents=True)
    (modules / "modules.order").write_text("kernel/a.ko\n")
    (modules / "modules.builtin").write_text("")
    (folder / "boot").mkdir()
    (folder / "boot" / f"vmlinuz-{release}").write_bytes(image(release))
    return folder


NAME = f"linux-image-{RELEASE}_1_amd64.deb"


def package(
    folder: Path,
    name: str = NAME,
    base: str = "lib",
    release: str = RELEASE,
    content: Path | None = None,
) -> Path:
    content = content or root(folder / f"content-{name}", base, release)
    (content / "DEBIAN").mkdir()
    about = f"Package: linux-image-{release.rstrip('+')}\nVersion: 1\nArchitecture: amd64\n"
    (content / "DEBIAN" / "control").write_text(f"{about}Maintainer: nobody\nDescription: test\n")
    argv = ("dpkg-deb", "-b", str(content), str(folder / name))
    subprocess.run(argv, check=True, capture_output=True)
    shutil.rmtree(content)
    return folder / name


def built_tree(folder: Path) -> Path:
    """One whose packages are beside it."""
    release, made = (
        folder / "linux" / f for f in ("include/config/kernel.release", "debian/files")
    )
    for file in (release, made):
        file.parent.mkdir(parents=True)
    release.write_text(f"{RELEASE}\n")
    made.write_text(
        "".join(f"linux-image-{RELEASE}_{n}_amd64.deb kernel optional\n" for n in (1, 2))
    )
    return folder / "linux"


def empty(folder: Path) -> Path:
    place = folder / "unpacked"
    place.mkdir()
    return place


@needs_tools
@pytest.mark.parametrize("base", ["lib", "usr/lib"])
def test_a_package_is_unpacked_with_its_modules_indexed(tmp_path: Path, base: str) -> None:
    made = kernels.unpack(Kernel("k", deb=str(package(tmp_path, base=base))), empty(tmp_path))
    assert (made.release, made.image.read_bytes()) == (RELEASE, image())
    assert made.modules == tmp_path / "unpacked" / "root" / base / "modules" / RELEASE
    assert (made.modules / "modules.dep").exists()


@needs_tools
def test_a_tree_gives_its_newest_package_but_no_debug_one_nor_that_of_another_release(
    tmp_path: Path,
) -> None:
    tree = built_tree(tmp_path)
    old, new = package(tmp_path), package(tmp_path, f"linux-image-{RELEASE}_2_amd64.deb")
    debug = package(tmp_path, f"linux-image-{RELEASE}-dbg_3_amd64.deb")
    other = package(tmp_path, f"linux-image-{RELEASE}_4_amd64.deb")  # of another tree
    for age, file in enumerate((other, debug, new, old)):
        os.utime(file, (10_000 - age, 10_000 - age))
    assert kernels.locate(Kernel("k", tree=str(tree))) == new
    assert kernels.unpack(Kernel("k", tree=str(tree)), empty(tmp_path)).release == RELEASE


@pytest.mark.root
@needs_tools
def test_what_another_account_puts_beside_a_tree_is_not_taken(tmp_path: Path) -> None:
    tree = built_tree(tmp_path)
    own, theirs = package(tmp_path), package(tmp_path, f"linux-image-{RELEASE}_2_amd64.deb")
    os.utime(own, (10_000, 10_000))
    assert kernels.locate(Kernel("k", tree=str(tree))) == theirs
    os.chown(theirs, 65534, 65534)
    assert kernels.locate(Kernel("k", tree=str(tree))) == own


@needs_tools
@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_the_archive_of_a_tree_is_unpacked(tmp_path: Path, suffix: str) -> None:
    content = root(tmp_path / "content")
    archive = tmp_path / f"linux-6.99.0-x86.tar{suffix}"
    subprocess.run(("tar", "-caf", str(archive), "-C", str(content), "boot", "lib"), check=True)
    made = kernels.unpack(Kernel("k", tree=str(tmp_path)), empty(tmp_path))
    assert (made.release, made.modules and made.modules.name) == (RELEASE, RELEASE)
    (content / "boot" / f"vmlinuz-{RELEASE}").unlink()
    subprocess.run(("tar", "-caf", str(archive), "-C", str(content), "boot"), check=True)
    shutil.rmtree(tmp_path / "unpacked")
    with pytest.raises(RequestError, match=r"expected one boot/vmlinuz-RELEASE in .*, found none"):
        kernels.unpack(Kernel("k", tree=str(tmp_path)), empty(tmp_path))


@needs_tools
def test_an_installed_folder_of_a_tree_is_left_as_it_is(tmp_path: Path) -> None:
    installed = root(tmp_path / "tar-install")
    before = sorted(installed.rglob("*"))
    made = kernels.unpack(Kernel("k", tree=str(tmp_path)), empty(tmp_path))
    assert made.content == kernels.digest(installed)
    assert made.modules is not None
    assert (made.modules / "modules.dep").exists()
    assert sorted(installed.rglob("*")) == before


def linked(content: Path, outside: Path) -> None:
    """Its folder of modules is one of the machine's, where depmod would write."""
    own = content / "lib" / "modules" / RELEASE
    shutil.rmtree(own)
    own.symlink_to(outside)


def of_other_things(content: Path, outside: Path) -> None:
    own = content / "lib" / "modules" / RELEASE
    (own / "secret.ko").symlink_to(outside / "secret")
    os.mkfifo(own / "pipe.ko")
    (own / "modules.dep").symlink_to(outside / "modules.dep")
    (content / "boot" / "vmlinuz").symlink_to(outside / "secret")


@needs_tools
@pytest.mark.parametrize("source", ["deb", "tree"])
@pytest.mark.parametrize("craft", [linked, of_other_things])
def test_a_package_takes_nothing_from_outside_and_puts_nothing_there(
    tmp_path: Path, source: str, craft: Callable[[Path, Path], None]
) -> None:
    outside, content = tmp_path / "outside", root(tmp_path / "tar-install")
    outside.mkdir()
    (outside / "secret").write_text("of this machine")
    craft(content, outside)
    place = tmp_path
    if source == "deb":
        place = package(tmp_path, content=content)
    made = kernels.unpack(Kernel("k", **{source: str(place)}), empty(tmp_path))
    assert [each.name for each in outside.iterdir()] == ["secret"]
    taken = [*made.modules.iterdir()] if made.modules else []
    assert not {"secret.ko", "pipe.ko"} & {each.name for each in taken}
    assert not any(each.is_symlink() for each in taken)


@pytest.mark.parametrize("name", ["../../evil.ko", "/etc/evil.ko", "gone.ko"])
def test_modules_are_files_of_their_folder(tmp_path: Path, name: str) -> None:
    for file in ("tls.ko", "b.ko"):
        (tmp_path / file).touch()
    (tmp_path / "modules.dep").write_text(f"tls.ko: b.ko {name}\n")
    with pytest.raises(RequestError, match=re.escape(f"{name!r} of modules.dep is no file there")):
        modules.needs(tmp_path)


def test_an_image_says_its_release(tmp_path: Path) -> None:
    file = tmp_path / "bzImage"
    file.write_bytes(image("6.1.2-mine"))
    made = kernels.unpack(Kernel("k", image=str(file)), empty(tmp_path))
    assert (made.release, made.modules) == ("6.1.2-mine", None)
    assert made.image.read_bytes() == file.read_bytes()
    assert made.content == kernels.digest(file)


@pytest.mark.parametrize(
    ("source", "path", "message"),
    [
        ("deb", "{}/none.deb", "{}/none.deb does not exist on this machine; correct `deb:`"),
        ("tree", "{}", "no linux-image-*.deb, linux-*.tar* or tar-install in {}; build one there"),
        ("image", "{}/text", "{}/text is not an x86 kernel image; expected a bzImage, such as"),
        ("image", "{}/up", "{}/up is not an x86 kernel image; expected a bzImage, such as"),
    ],
)
def test_what_is_no_kernel_is_refused(tmp_path: Path, source: str, path: str, message: str) -> None:
    (tmp_path / "text").write_text("hello\n" * 500)
    (tmp_path / "up").write_bytes(image("../../etc"))
    kernel: dict[str, Any] = {source: path.format(tmp_path)}
    with pytest.raises(RequestError, match=f"^kernel k: {re.escape(message.format(tmp_path))}"):
        kernels.unpack(Kernel("k", **kernel), empty(tmp_path))


@needs_tools
def test_a_broken_package_is_refused_with_what_dpkg_said(tmp_path: Path) -> None:
    (tmp_path / "x.deb").write_text("no archive\n" * 100)
    with pytest.raises(
        RequestError, match=r"dpkg-deb of .*x\.deb failed .*: .*not a Debian format"
    ):
        kernels.unpack(Kernel("k", deb=str(tmp_path / "x.deb")), empty(tmp_path))
