"""Any of ethtool's features by the kernel's own name: feature.rx-gro-list."""

from netbench.settings.offload import Offload


class Feature(Offload):
    name = "feature."
    about = "Any ethtool feature by the kernel's name, such as feature.rx-gro-list."
    pattern = ""
