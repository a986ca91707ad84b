"""Generic receive offload: the kernel joins what arrives into large segments."""

from netbench.settings.offload import Offload


class Gro(Offload):
    name = "gro"
    about = "Generic receive offload: the kernel joins what arrives into large segments."
    pattern = "rx-gro"
