"""Sizes of the device's descriptor rings."""

from netbench.settings.parameters import Parameters


class Rings(Parameters):
    name = "rings"
    about = "Sizes of the device's descriptor rings."
    levels = "a number for both directions, or a mapping such as {rx: 4096, tx: 1024}"
    op = "rings"
    plain = ("rx", "tx")
