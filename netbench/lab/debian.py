"""Debian's packages of kernels and of guests' programs: apt finds and verifies them, a cache
keeps them.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from netbench.base.errors import LabRefused
from netbench.kernels.cache import base, use
from netbench.lab.command import Tools
from netbench.lab.kept import is_kept, keep, refuse_shared

NEEDS = ("apt-get", "apt-cache", "dpkg-deb", "dpkg-query")
META = "linux-image-cloud-amd64"  # depends on the newest cloud kernel of this machine's Debian
_IMAGE = re.compile(r"linux-image-(\d+\.\d+\.\d+\S*-cloud-amd64)\Z")
_CACHED = re.compile(r"linux-image-(\d+\.\d+\.\d+\S*-cloud-amd64)_[^_]+_amd64\.deb\Z")
_DEPENDS = re.compile(r"^\s*Depends: linux-image-(\S+)$", re.MULTILINE)
_SERIES = re.compile(r"\d+\.\d+")
_FIELD = re.compile(r"^(Version|Architecture): (\S+)$", re.MULTILINE)
_APT = (
    "/var/lib/apt/lists",
    "/etc/apt",
    "/etc/apt/sources.list.d",
    "/etc/apt/preferences.d",
    "/var/lib/dpkg/status",
)
_DOWNLOAD_SECONDS = 300.0
_UPDATE = "run `apt-get update`"


@dataclass(frozen=True)
class Package:
    """A package that apt knows: the version that it would install."""

    name: str
    version: str
    architecture: str

    @property
    def file(self) -> str:
        """The name that `apt-get download` gives it."""
        return f"{self.name}_{self.version.replace(':', '%3a')}_{self.architecture}.deb"


def cache() -> Path:
    """The folder that labs share; it exists when this returns. Errors: LabRefused."""
    place = base() / "lab"
    try:
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise LabRefused(
            f"cannot create {place}: {error.strerror}; set XDG_CACHE_HOME to a writable folder"
        ) from error
    refuse_shared(place)
    return place


def series(release: str) -> str:
    """6.1 of 6.1.0-44-cloud-amd64."""
    match = _SERIES.match(release)
    return match[0] if match else release


def fits(release: str, word: str) -> bool:
    """Whether a word is a release, or its beginning: 6.1 is that of 6.1.0-44-cloud-amd64, not of
    6.12.0.
    """
    return bool(word) and re.match(re.escape(word) + r"(?!\d)", release) is not None


def order(release: str) -> tuple[int, ...]:
    """A key that sorts releases of Debian's cloud kernels by age."""
    return tuple(map(int, re.findall(r"\d+", release)))


def newest(tools: Tools) -> str:
    """The release of this machine's Debian's own newest cloud kernel. Errors: LabRefused."""
    match = _DEPENDS.search(_ask(tools, "depends", META))
    if match:
        return match[1]
    cached = sorted(_cached_packages(""), key=order)
    if not cached:
        raise LabRefused(
            f"apt has no {META}, and the cache has none; {_UPDATE}, or use a kernel of this machine"
        )
    return cached[-1]


def kernel(word: str, tools: Tools) -> Path:
    """The package of the newest cloud kernel whose release is `word` or begins with it. Errors:
    LabRefused.
    """
    known = sorted(_known(tools), key=order, reverse=True)
    why = ""
    for package in _offered((release for release in known if fits(release, word)), tools):
        try:
            return fetch((package,), tools)[0]
        except LabRefused as error:
            why = str(error)
            break
    cached = _cached_packages(word)
    for release in sorted(cached, key=order, reverse=True):
        if is_kept(cached[release]):
            return cached[release]
    if why:
        raise LabRefused(why)
    if not known:
        raise LabRefused(
            f"kernel {word}: apt has no linux-image-*-cloud-amd64, and the cache has none;"
            f" {_UPDATE}"
        )
    available = ", ".join(dict.fromkeys(map(series, reversed(known))))
    raise LabRefused(
        f"kernel {word}: Debian's cloud kernels on this machine are {available}; choose one of"
        " them, or give a deb, tree or image"
    )


def _ask(tools: Tools, *words: str) -> str:
    """The output of apt-cache, "" where it knows nothing. It takes a second, so it is cached until
    apt's lists change.
    """
    place = cache() / "apt" / _lists()
    answer = place / sha256(" ".join(words).encode()).hexdigest()
    with contextlib.suppress(OSError):
        return answer.read_text()
    if not place.exists():
        shutil.rmtree(place.parent, ignore_errors=True)
    output = tools.attempt(("apt-cache", *words)).stdout
    with contextlib.suppress(OSError), tempfile.TemporaryDirectory(dir=cache()) as scratch:
        place.mkdir(parents=True, exist_ok=True)
        draft = Path(scratch, "draft")
        draft.write_text(output)
        draft.rename(answer)
    return output


def _lists() -> str:
    """A digest of apt's lists, sources and preferences, and of the installed packages."""
    digest = sha256()
    for place in map(Path, _APT):
        for file in sorted((place, *place.glob("*"))):
            with contextlib.suppress(OSError):
                digest.update(f"{file} {file.stat().st_mtime_ns} {file.stat().st_size}\n".encode())
    return digest.hexdigest()[:16]


def _known(tools: Tools) -> set[str]:
    """The releases of all cloud kernels that apt knows."""
    names = _ask(tools, "pkgnames", "linux-image-").split()
    return {match[1] for name in names if (match := _IMAGE.match(name))}


def _offered(releases: Iterable[str], tools: Tools) -> Iterator[Package]:
    for release in releases:
        if offered := package(f"linux-image-{release}", tools):
            yield offered


def _cached_packages(word: str) -> dict[str, Path]:
    """Packages of kernels in the cache, by release, that fit a word ("": all)."""
    packages = (
        (match[1], file)
        for file in cache().glob("linux-image-*.deb")
        if (match := _CACHED.match(file.name))
    )
    return {release: file for release, file in packages if not word or fits(release, word)}


def package(name: str, tools: Tools) -> Package | None:
    """What apt would install by this name, or None where it has no such package."""
    fields = dict(_FIELD.findall(_ask(tools, "show", "--no-all-versions", name)))
    if len(fields) < 2:
        return None
    return Package(name, fields["Version"], fields["Architecture"])


def fetch(wanted: Sequence[Package], tools: Tools) -> list[Path]:
    """Packages' files: those kept from before, the others downloaded, which apt verifies. Errors:
    LabRefused.
    """
    places = [cache() / one.file for one in wanted]
    missing = [one for one, place in zip(wanted, places, strict=True) if not is_kept(place)]
    if missing:
        _download(missing, tools)
    return places


def _download(wanted: Sequence[Package], tools: Tools) -> None:
    names = [f"{one.name}={one.version}" for one in wanted]
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        words = ("apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", *names)
        done = tools.attempt(words, seconds=_DOWNLOAD_SECONDS, cwd=Path(scratch))
        files = {file.name: file for file in Path(scratch).glob("*.deb")}
        if done.returncode or not all(one.file in files for one in wanted):
            error = next(
                (
                    line.removeprefix("E: ")
                    for line in done.stderr.splitlines()
                    if line.startswith("E: ")
                ),
                "",
            )
            others = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise LabRefused(
                f"cannot download {names[0]}{others}: {error or 'apt-get printed nothing'}; "
                f"if the network is there, {_UPDATE} and try again"
            )
        for name, file in files.items():
            file.chmod(0o644)
            keep(file, cache() / name)
            use(cache() / name)


def unpacked(name: str, tools: Tools) -> Path:
    """A folder of the cache with the content of a package, and of the libraries that it needs and
    this machine lacks.

    Errors: LabRefused.
    """
    own = package(name, tools)
    if own is None:
        raise LabRefused(
            f"guests need the Debian package {name}, which is neither installed nor known to apt;"
            f" {_UPDATE}"
        )
    place = cache() / "programs" / f"{own.name}_{own.version.replace(':', '%3a')}"
    if is_kept(place):
        return place
    place.parent.mkdir(exist_ok=True)
    libraries = (
        offered
        for library in _missing_libraries(name, tools)
        if (offered := package(library, tools))
    )
    files = fetch((own, *libraries), tools)
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        draft = Path(scratch, "draft")
        for file in files:
            tools.run(("dpkg-deb", "-x", str(file), str(draft)))
        with contextlib.suppress(OSError):  # another lab made it first
            keep(draft, place)
    use(place)
    return place


def _missing_libraries(name: str, tools: Tools) -> list[str]:
    """The packages of libraries that a package depends on, however indirectly, and that are not
    installed.
    """
    kinds = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
    output = _ask(tools, "depends", "--recurse", *(f"--no-{kind}" for kind in kinds), name)
    needed = [line for line in output.splitlines() if line.startswith("lib")]
    installed = tools.attempt(
        ("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *needed)
    ).stdout.splitlines()
    return [library for library in needed if f"{library} installed" not in installed]
