"""TCP segmentation offload: the device cuts large segments."""

from netbench.settings.offload import Offload


class Tso(Offload):
    name = "tso"
    about = "TCP segmentation offload: the device cuts large segments."
    pattern = "tx-tcp*-segmentation"
