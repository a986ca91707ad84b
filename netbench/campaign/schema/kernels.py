"""Keys of a kernel to boot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, TypeAdapter

from netbench.campaign.messages import expected, listed, wrong
from netbench.campaign.schema import kinds
from netbench.campaign.schema.keys import Keys, optional
from netbench.campaign.tree import Plain
from netbench.model import Kernel, build_name

SOURCES = ("image", "deb", "tree", "release", "git")
OF_GIT = ("rev", "config", "fragment", "make")
TINY, LAB = "tinyconfig", "lab"
_ON_HOST = kinds.text("a path on the host")
_RELEASE = kinds.text("a release such as 6.12.38-amd64, or its beginning")
_REVISION = kinds.matching("a revision such as v6.12", r"[^\s:-][^\s:]*")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*=.*")
MOST_BUILDS = 64


class BuildKeys(Keys):
    """A build of a kernel, from one source: `image`, `deb`, `tree` or `release`."""

    image: Annotated[str | None, _ON_HOST] = optional(
        "path of a kernel on the host", "/boot/vmlinuz-6.12.38-amd64"
    )
    initrd: Annotated[str | None, _ON_HOST] = optional(
        "path of the initrd on the host that goes with image", "/boot/initrd.img-6.12.38-amd64"
    )
    deb: Annotated[str | None, kinds.text("a file of this machine")] = optional(
        "a linux-image package on this machine", "linux-image-6.12.38_amd64.deb"
    )
    tree: Annotated[str | None, kinds.text("a folder of this machine")] = optional(
        "a kernel build tree on this machine after `make bindeb-pkg` or `make tar-pkg`",
        "~/src/linux",
    )
    release: Annotated[str | None, _RELEASE] = optional(
        "release of a kernel that is installed on the host, or the beginning of one", "6.12"
    )

    def written(self) -> dict[str, Any]:
        """The keys that have a value."""
        return {key: value for key, value in self if value is not None}


def _built(value: Plain) -> Any:
    """A build of a list."""
    sources = SOURCES[:-1]
    if not isinstance(value, dict):
        raise expected(f"a mapping with one of {listed(sources)}", value)
    _refuse_sources(value, sources)
    return value


_LISTED = TypeAdapter(list[Annotated[BuildKeys, BeforeValidator(_built)]])
_NUMBER = kinds.number("a number of builds", 1, MOST_BUILDS)


def _builds(value: Plain) -> int | list[BuildKeys]:
    if not isinstance(value, list):
        return int(_NUMBER.parse(value))
    if not 2 <= len(value) <= MOST_BUILDS:
        raise wrong(f"expected 2 to {MOST_BUILDS} builds, got {len(value)}")
    return _LISTED.validate_python(value)


_BUILDS = kinds.Kind(
    _builds,
    {
        "anyOf": [
            _NUMBER.schema,
            {"type": "array", "minItems": 2, "items": BuildKeys.model_json_schema()},
        ]
    },
)


class KernelKeys(BuildKeys):
    """A kernel to boot, from one source: `image`, `deb`, `tree`, `release` or `git`; or `builds` of
    it, a list with one source each.
    """

    git: Annotated[str | None, kinds.text("a repository of this machine")] = optional(
        "a git repository on this machine, of which `rev` is built in a worktree of netbench's own",
        "~/src/linux",
    )
    rev: Annotated[str | None, _REVISION] = optional(
        "with git: a commit, tag or branch; which commit it is when the campaign begins is kept",
        "v6.12",
    )
    config: Annotated[str | None, kinds.text("a .config, or a target of make")] = optional(
        f"with git: the kernel's configuration, a file or a target such as defconfig (left out:"
        f" {TINY} with the fragment `{LAB}`)",
        "/boot/config-6.12.38-amd64",
    )
    fragment: Annotated[str | None, kinds.text("a file of this machine")] = optional(
        f"with git: lines that change the configuration, a file; `{LAB}`: what a lab's guests need",
        LAB,
    )
    make: Annotated[tuple[str, ...] | None, kinds.argv()] = optional(
        "with git: variables for make", ["CC=gcc-12"]
    )
    append: Annotated[str | None, kinds.text("words of a kernel command line")] = optional(
        "words added to the kernel's command line", "mitigations=off"
    )
    builds: Annotated[int | list[BuildKeys] | None, _BUILDS] = optional(
        "with git: how often the kernel is linked, each time with its code in another order (left"
        " out: once, in the tree's own); or a list of builds in place of a source; each round of"
        " boots takes the next",
        2,
    )

    def kernel(self, name: str) -> Kernel:
        """The kernel that the keys name."""
        written = self.written()
        builds = written.pop("builds", 1)
        if isinstance(builds, list):
            each = enumerate((build.written() for build in builds), 1)
            kernels = (Kernel(build_name(name, at), **written | keys) for at, keys in each)
            return Kernel(name, **written, builds=tuple(kernels))
        written["layouts"] = builds
        if self.git and not self.config:
            written |= {"config": TINY, "fragment": self.fragment or LAB}
        return Kernel(name, **written)


def _refuse_sources(value: dict[str, Plain], sources: Sequence[str]) -> None:
    """Errors: PydanticCustomError where not one source is named."""
    named = [key for key in sources if key in value]
    if len(named) != 1:
        raise wrong(f"expected one of {listed(sources)}, got {' and '.join(named) or 'none'}")
    if "initrd" in value and "image" not in value:
        raise wrong(f"expected initrd with image, got it with {named[0]}")


def _one_source(value: Plain) -> Any:
    if not isinstance(value, dict):
        raise expected(f"a mapping with one of {listed(SOURCES)}", value)
    builds = value.get("builds")
    sources = (*SOURCES, "builds") if isinstance(builds, list) else SOURCES
    _refuse_sources(value, sources)
    named = next(key for key in sources if key in value)
    if builds is not None and named not in ("builds", "git"):
        raise wrong(f"expected a number of builds with git, got one with {named}; list builds")
    if "git" in value and "rev" not in value:
        raise wrong("expected rev with git, such as v6.12, got none")
    if alone := [key for key in OF_GIT if key in value and "git" not in value]:
        it = "it" if len(alone) == 1 else "them"
        raise wrong(f"expected {' and '.join(alone)} with git, got {it} with {named}")
    words = value.get("make") or []
    for word in words.split() if isinstance(words, str) else words:
        if not (isinstance(word, str) and _VARIABLE.fullmatch(word)):
            raise wrong(f"expected variables for make such as CC=gcc-12, got {word!r}")
    return value


KERNELS = dict[str, Annotated[KernelKeys, BeforeValidator(_one_source)]]
