"""Keys of a kernel to boot."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from netbench.campaign.messages import expected, listed, wrong
from netbench.campaign.schema import kinds
from netbench.campaign.schema.keys import Keys, optional
from netbench.campaign.tree import Plain
from netbench.model import Kernel

SOURCES = ("image", "deb", "tree", "release")
_ON_HOST = kinds.text("a path on the host")
_RELEASE = kinds.text("a release such as 6.12.38-amd64, or its beginning")


class KernelKeys(Keys):
    """A kernel to boot, from one source: `image`, `deb`, `tree` or `release`."""

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
    append: Annotated[str | None, kinds.text("words of a kernel command line")] = optional(
        "words added to the kernel's command line", "mitigations=off"
    )

    def kernel(self, name: str) -> Kernel:
        """The kernel that the keys name."""
        written = {key: value for key, value in self.model_dump().items() if value is not None}
        return Kernel(name, **written)


def _one_source(value: Plain) -> Any:
    if not isinstance(value, dict):
        raise expected(f"a mapping with one of {listed(SOURCES)}", value)
    named = [key for key in SOURCES if key in value]
    if len(named) != 1:
        raise wrong(f"expected one of {listed(SOURCES)}, got {' and '.join(named) or 'none'}")
    if "initrd" in value and "image" not in value:
        raise wrong(f"expected initrd with image, got it with {named[0]}")
    return value


KERNELS = dict[str, Annotated[KernelKeys, BeforeValidator(_one_source)]]
