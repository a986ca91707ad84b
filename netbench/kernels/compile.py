"""Kernels built from git, kept by commit, layout, configuration and compiler: none built twice."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from netbench.base.errors import RequestError
from netbench.base.ownership import refuse_foreign
from netbench.kernels import cache, needs, revision
from netbench.kernels.layout import LINKED, Unshuffled
from netbench.kernels.source import digest
from netbench.model import Kernel

LAB = "lab"
"""The word for the fragment that comes with netbench: what a kernel needs to boot in a lab."""
_OUTPUT = "tar-install"
_PACKAGE = "dir-pkg"  # the target of make that fills it
_WHOLE = "whole.sha256"
_ERROR = re.compile(
    r"^(?P<file>\S+?):(\d+:)*\s(?:fatal )?error:|undefined reference|^\S*ld\S*: (?!warning)"
    r"|^Error: |\bNo rule to make target|^error: "
)
_STOPPED = re.compile(r"^make(\[\d+\])?: \*\*\*")
_TARGET = re.compile(r"(?!local|rand)\w+config")  # of make, that always gives the same
_KEPT = re.compile("PATH|HOME|USER|LOGNAME|TMPDIR|XDG_CACHE_HOME|CCACHE_.*")


class BuildFailed(RequestError):
    """A revision that does not compile."""


class Recipe(NamedTuple):
    """How a kernel is built: everything besides the commit that decides what comes out."""

    config: bytes  # a .config; b"": `base` is a target of make
    base: str
    fragment: bytes
    make: tuple[str, ...]
    compiler: str

    @property
    def key(self) -> str:
        """16 hex digits."""
        parts = (self.config, self.fragment, *map(str.encode, (self.base, *self.make)))
        whole = b"\0".join((*(sha256(part).digest() for part in parts), self.compiler.encode()))
        return sha256(whole).hexdigest()[:16]


class Told(NamedTuple):
    """Who hears of builds: `say` what is done, `line` each line that a build prints."""

    say: Callable[[str], None]
    line: Callable[[str], None]


def build(
    kernel: Kernel, told: Told, jobs: int | None = None, recipe: Recipe | None = None
) -> Path:
    """Build a kernel from git, unless the cache has it: the folder that holds its `tar-install`.
    Errors: BuildFailed with the first error; RequestError for what cannot be built at all;
    StoreError for a cache that others may have changed.
    """
    recipe, commit = recipe or recipe_of(kernel), revision.commit_of(kernel)
    layout = f"-layout{kernel.layout}" if kernel.layout else ""
    place = _cache("built") / f"{commit[:16]}-{recipe.key}{layout}"
    if is_built(place):
        return place
    trees = _cache("trees")
    tree = trees / sha256(f"{revision.repository(kernel)}\0{recipe.key}".encode()).hexdigest()[:16]
    with _locked(trees / f"{tree.name}.lock", kernel, told.say):
        if is_built(place):  # another built it while this one waited
            return place
        about = revision.subject(kernel, commit)
        told.say(f"kernel {kernel.name}: building {commit[:12]}{layout} ({about})")
        tree.mkdir(exist_ok=True)
        make = partial(_make, kernel, recipe, tree, commit, told.line, jobs)
        _compile(kernel, recipe, tree, commit, make)
        _keep(tree / "objects" / _OUTPUT, place)
    return place


def _compile(
    kernel: Kernel, recipe: Recipe, tree: Path, commit: str, make: Callable[[str], None]
) -> None:
    """Bring a tree's `tar-install` to a commit and a layout. Errors: RequestError."""
    own = Unshuffled(tree, commit)
    if not (kernel.layout and own.is_kept):
        own.forget()
    revision.check_out(kernel, commit, tree / "source")
    _configure(kernel, recipe, tree)
    if not own.is_kept:
        make(LINKED if kernel.layout else _PACKAGE)
        own.keep()
    if kernel.layout:
        own.relink(kernel, partial(make, _PACKAGE))


def is_built(place: Path) -> bool:
    """Whether a folder holds a whole build, as it was kept."""
    try:
        return digest(place / _OUTPUT) == (place / _WHOLE).read_text()
    except (OSError, RequestError):
        return False


def recipe_of(kernel: Kernel) -> Recipe:
    """How a kernel is built. Errors: RequestError for files that cannot be read, and programs that
    are not installed.
    """
    is_target = bool(_TARGET.fullmatch(kernel.config))
    config = b"" if is_target else _read(kernel, "config", kernel.config)
    needs.require(kernel, config)
    fragment = b""
    if kernel.fragment == LAB:
        fragment = files("netbench.kernels").joinpath("lab.config").read_bytes()
    elif kernel.fragment:
        fragment = _read(kernel, "fragment", kernel.fragment)
    base = kernel.config if is_target else ""
    return Recipe(config, base, fragment, kernel.make, _compiler(kernel))


def _compiler(kernel: Kernel) -> str:
    """The compiler's own words for itself: another version makes another kernel."""
    named = dict(word.partition("=")[::2] for word in kernel.make)
    llvm, gcc = named.get("LLVM", ""), named.get("CROSS_COMPILE", "") + "gcc"
    clang = f"{llvm * llvm.endswith('/')}clang{llvm * llvm.startswith('-')}"  # kbuild's llvm.rst
    name = named.get("CC") or (clang if llvm else gcc)
    try:
        argv = (*name.split(), "--version")
        text = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise RequestError(
            f"kernel {kernel.name}: the compiler {name} cannot be run: {error}"
        ) from error
    return text.partition("\n")[0]


def _read(kernel: Kernel, key: str, path: str) -> bytes:
    try:
        return Path(os.path.expanduser(path)).read_bytes()
    except OSError as error:
        raise RequestError(
            f"kernel {kernel.name}: cannot read {path}: {error.strerror}; correct `{key}:`"
        ) from error


def _cache(name: str) -> Path:
    place = cache.base() / name
    try:
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(
            f"cannot create {place}: {error.strerror}; set XDG_CACHE_HOME to a writable folder"
        ) from error
    refuse_foreign(place)
    return place


@contextmanager
def _locked(file: Path, kernel: Kernel, say: Callable[[str], None]) -> Iterator[None]:
    """Hold a tree: the lock ends with this process, and what is left of its make."""
    file.touch(0o600)  # none but this account may hold the lock
    with file.open("w") as lock:
        os.set_inheritable(lock.fileno(), True)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"kernel {kernel.name}: another netbench builds from this repository; waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # also of what a compiler has left running


def _configure(kernel: Kernel, recipe: Recipe, tree: Path) -> None:
    """Write the configuration, with the time of one that the tree has already: a new one rebuilds
    much. Errors: BuildFailed, also for what is asked and is not in it.
    """
    objects = tree / "objects"
    objects.mkdir(exist_ok=True)
    config = objects / ".config"
    before = (config.read_bytes(), config.stat().st_mtime_ns) if config.exists() else None
    config.unlink(missing_ok=True)  # the revision before may not have known all that is asked
    if recipe.base:
        _run_make(kernel, recipe, tree, [recipe.base])
    else:
        config.write_bytes(recipe.config)
    with config.open("ab") as out:
        out.write(b"\n" + recipe.fragment)
    _run_make(kernel, recipe, tree, ["olddefconfig"])
    if before and config.read_bytes() == before[0]:
        os.utime(config, ns=(before[1], before[1]))
    has = set(config.read_bytes().splitlines())
    asked = [line for line in recipe.fragment.splitlines() if line.startswith(b"CONFIG_")]
    lost = b", ".join(line for line in asked if line not in has and not line.endswith(b"=n"))
    if lost:
        config.unlink()
        raise BuildFailed(
            f"kernel {kernel.name}: {revision.named(kernel)} does not take"
            f" {lost.decode(errors='replace')} of its configuration; change `fragment:`, or add"
            " what they depend on"
        )


def _environment(key: str, commit: str = "") -> dict[str, str]:
    """The same words in every build by a recipe: a kernel says who built it, when and, as its
    version, by which. Nothing that make obeys (KCFLAGS, LLVM, ARCH) comes from the environment: it
    is not in the key; `make:` says the same.
    """
    inherited = {name: word for name, word in os.environ.items() if _KEPT.fullmatch(name)}
    own = {
        "KBUILD_BUILD_USER": "netbench",
        "KBUILD_BUILD_HOST": "netbench",
        "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
        "KBUILD_BUILD_VERSION": key,
        "LOCALVERSION": f"-{commit[:12]}" if commit else "",
    }
    return {**inherited, "LC_ALL": "C", **own}


def _run_make(kernel: Kernel, recipe: Recipe, tree: Path, targets: list[str]) -> None:
    with _making(recipe, tree, targets) as make:
        printed = make.stdout.read() if make.stdout else ""
    if make.returncode:
        (tree / "log.txt").write_text(printed)
        raise _failed(kernel, printed.splitlines(), tree, targets[0])


@contextmanager
def _making(
    recipe: Recipe, tree: Path, words: list[str], commit: str = ""
) -> Iterator[subprocess.Popen[str]]:
    """make, all that it prints in one stream; it ends with what reads that."""
    with subprocess.Popen(
        ["make", "-C", str(tree / "source"), f"O={tree / 'objects'}", *recipe.make, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        env=_environment(recipe.key, commit),
        close_fds=False,
        start_new_session=True,
    ) as make:
        try:
            yield make
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(make.pid, signal.SIGTERM)
            raise


def _make(
    kernel: Kernel,
    recipe: Recipe,
    tree: Path,
    commit: str,
    line: Callable[[str], None],
    jobs: int | None,
    target: str,
) -> None:
    """Compile and link; with _PACKAGE into `objects/tar-install`. Errors: RequestError."""
    shutil.rmtree(tree / "objects" / _OUTPUT, ignore_errors=True)
    words, log = [f"-j{jobs or os.cpu_count() or 1}", target], tree / "log.txt"
    with log.open("w") as out, _making(recipe, tree, words, commit) as make:
        for each in make.stdout or ():
            out.write(each)
            line(f"kernel {kernel.name}: {each.strip()}")
    if make.returncode:
        raise _failed(kernel, log.read_text().splitlines(), tree, "the build")


def _failed(kernel: Kernel, lines: list[str], tree: Path, what: str) -> BuildFailed:
    """The first error of a build, with its file."""
    first = next((line for line in lines if _ERROR.search(line)), "")
    first = first or next((line for line in lines if _STOPPED.match(line)), "it printed no error")
    first = first.strip().replace(f"{tree / 'source'}/", "").replace("../source/", "")
    packages = [package for header, package in needs.HEADERS.items() if f"error: {header}" in first]
    remedy = f"on Debian: apt install {packages[0]}; " if packages else ""
    return BuildFailed(
        f"kernel {kernel.name}: {what} of {revision.named(kernel)} failed: {first}; {remedy}all"
        f" that it printed is in {tree / 'log.txt'}"
    )


def _keep(output: Path, place: Path) -> None:
    """Move what a build installed to its place in the cache, without what nobody boots."""
    for each in (output / "boot").glob("vmlinux-*"):
        each.unlink()
    for each in output.glob("lib/modules/*/*"):
        if each.name in ("build", "source") and each.is_symlink():
            each.unlink()
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        draft = Path(scratch) / "draft"
        draft.mkdir(mode=0o755)
        output.rename(draft / _OUTPUT)
        (draft / _WHOLE).write_text(digest(draft / _OUTPUT))
        if place.exists():
            place.rename(Path(scratch) / "changed")
        draft.rename(place)
