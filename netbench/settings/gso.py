"""Generic segmentation offload: the kernel cuts large segments as late as it can."""

from netbench.settings.offload import Offload


class Gso(Offload):
    name = "gso"
    about = "Generic segmentation offload: the kernel cuts large segments as late as it can."
    pattern = "tx-generic-segmentation"
