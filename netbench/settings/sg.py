"""Scatter-gather: the device sends from several pieces of memory; without it TSO and zero-copy are
off too.
"""

from netbench.settings.offload import Offload


class Sg(Offload):
    name = "sg"
    about = (
        "Scatter-gather: the device sends from several pieces of memory; without it TSO and"
        " zero-copy are off too."
    )
    pattern = "tx-scatter-gather*"
