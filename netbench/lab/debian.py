"""Debian's kernels and guests' programs: apt finds and verifies them, a cache keeps them."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from netbench.base.errors import LabRefused, StoreError
from netbench.base.ownership import refuse_foreign
from netbench.kernels.cache import base
from netbench.lab.command import Tools

NEEDS = ("apt-get", "apt-cache", "dpkg-deb")
META = "linux-image-cloud-amd64"  # depends on the newest cloud kernel of this machine's Debian
_IMAGE = re.compile(r"linux-image-(\d+\.\d+\.\d+\S*-cloud-amd64)\Z")
_CACHED = re.compile(r"linux-image-(\d+\.\d+\.\d+\S*-cloud-amd64)_[^_]+_amd64\.deb\Z")
_DEPENDS = re.compile(r"^\s*Depends: linux-image-(\S+)$", re.MULTILINE)
_SERIES = re.compile(r"\d+\.\d+")
_NAMED = re.compile(r"^'[^']*' (\S+\.deb) ", re.MULTILINE)  # --print-uris, apt-get(8)
_DOWNLOAD_SECONDS = 300.0
_UPDATE = "run `apt-get update`"


def cache() -> Path:
    """The folder that labs share, which no other user can write to; it exists when this returns.
    What is in it is whole, since it is moved there when it is. Errors: LabRefused.
    """
    place = base() / "lab"
    try:
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise LabRefused(
            f"cannot create {place}: {error.strerror}; set XDG_CACHE_HOME to a writable folder"
        ) from error
    try:
        refuse_foreign(place)
    except StoreError as error:
        raise LabRefused(
            f"{error}; or set XDG_CACHE_HOME to a folder of your own: guests' kernels come from"
            " there"
        ) from error
    return place


def series(release: str) -> str:
    """6.1 of 6.1.0-44-cloud-amd64."""
    match = _SERIES.match(release)
    return match[0] if match else release


def fits(release: str, word: str) -> bool:
    """Whether a word is a release, or its beginning: 6.1 of 6.1.0-44-cloud-amd64, not of 6.12."""
    return bool(word) and re.match(re.escape(word) + r"(?!\d)", release) is not None


def order(release: str) -> tuple[int, ...]:
    """A key that sorts releases of Debian's cloud kernels by age."""
    return tuple(map(int, re.findall(r"\d+", release)))


def newest(tools: Tools) -> str:
    """The release of this machine's Debian's own newest cloud kernel. Errors: LabRefused."""
    match = _DEPENDS.search(tools.attempt(("apt-cache", "depends", META)).stdout)
    if match:
        return match[1]
    if cached := _cached_packages(""):
        return max(cached, key=order)
    raise LabRefused(
        f"apt has no {META}, and the cache has none; {_UPDATE}, or use a kernel of this machine"
    )


def kernel(word: str, tools: Tools) -> Path:
    """The package of the newest cloud kernel whose release is `word` or begins with it: one that
    was kept, or apt's. Errors: LabRefused.
    """
    names = tools.attempt(("apt-cache", "pkgnames", "linux-image-")).stdout.split()
    known = sorted({match[1] for name in names if (match := _IMAGE.match(name))}, key=order)
    cached = _cached_packages(word)
    for release in (release for release in reversed(known) if fits(release, word)):
        if release in cached:
            return fetch([cached[release].name], tools)[0]
        if files := _named(tools, "download", f"linux-image-{release}"):
            try:
                return fetch(files, tools)[0]
            except LabRefused:
                if not cached:
                    raise
                break
    if cached:
        return fetch([cached[max(cached, key=order)].name], tools)[0]
    if not known:
        raise LabRefused(
            f"kernel {word}: apt has no linux-image-*-cloud-amd64, and the cache has none;"
            f" {_UPDATE}"
        )
    available = ", ".join(dict.fromkeys(map(series, known)))
    raise LabRefused(
        f"kernel {word}: Debian's cloud kernels on this machine are {available}; choose one of"
        " them, or give a deb, tree or image"
    )


def _cached_packages(word: str) -> dict[str, Path]:
    """Packages of kernels in the cache, by release, that fit a word ("": all)."""
    packages = (
        (match[1], file)
        for file in cache().glob("linux-image-*.deb")
        if (match := _CACHED.match(file.name))
    )
    return {release: file for release, file in packages if not word or fits(release, word)}


def _named(tools: Tools, *words: str) -> list[str]:
    """The names of the files that apt-get would download for these words; none where it cannot."""
    return _NAMED.findall(tools.attempt(("apt-get", "-qq", "--print-uris", *words)).stdout)


def fetch(files: Sequence[str], tools: Tools) -> list[Path]:
    """Packages by the names that apt gives to their files: those kept from before, the others
    downloaded, which apt verifies. Errors: LabRefused.
    """
    places = [cache() / file for file in files]
    missing = [place.name for place in places if not place.exists()]
    if missing:
        _download(missing, tools)
    return places


def _download(files: Sequence[str], tools: Tools) -> None:
    parts = (file.replace("%3a", ":").split("_") for file in files)
    names = [f"{name}={version}" for name, version, _ in parts]
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        words = ("apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", *names)
        done = tools.attempt(words, seconds=_DOWNLOAD_SECONDS, cwd=Path(scratch))
        places = [Path(scratch, file) for file in files]
        if done.returncode or not all(place.exists() for place in places):
            errors = [line for line in done.stderr.splitlines() if line.startswith("E: ")]
            error = errors[0].removeprefix("E: ") if errors else "apt-get printed nothing"
            raise LabRefused(
                f"cannot download {' '.join(names)}: {error}; if the network is there, {_UPDATE}"
                " and try again"
            )
        for place in places:
            place.chmod(0o644)
            place.rename(cache() / place.name)


def unpacked(name: str, tools: Tools) -> Path:
    """A folder of the cache with the content of a package, and of what it needs and this machine
    lacks: one that was kept, or apt's. Errors: LabRefused.
    """
    for place in (cache() / "programs").glob(f"{name}_*"):
        if place.is_dir():
            return place
    names = _named(tools, "--no-install-recommends", "--reinstall", "install", name)
    own = next((file for file in names if file.startswith(f"{name}_")), None)
    if own is None:
        raise LabRefused(
            f"guests need the Debian package {name}, which is neither installed nor known to apt;"
            f" {_UPDATE}"
        )
    files = fetch(names, tools)
    place = cache() / "programs" / own.rpartition("_")[0]
    place.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        draft = Path(scratch, "draft")
        for file in files:
            tools.run(("dpkg-deb", "-x", str(file), str(draft)))
        with contextlib.suppress(OSError):  # another lab made it first
            draft.rename(place)
    return place
