"""Kernels that are files of this machine: packages, the output of build trees, images."""

from netbench.kernels.source import (
    Unpacked,
    digest,
    image_release,
    index,
    locate,
    on_this_machine,
    unpack,
)

__all__ = ["Unpacked", "digest", "image_release", "index", "locate", "on_this_machine", "unpack"]
