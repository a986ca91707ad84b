"""Large receive offload: the device joins what arrives."""

from netbench.settings.offload import Offload


class Lro(Offload):
    name = "lro"
    about = "Large receive offload: the device joins what arrives."
    pattern = "rx-lro"
