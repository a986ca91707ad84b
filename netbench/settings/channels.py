"""Queues of the device."""

from netbench.settings.parameters import Parameters


class Channels(Parameters):
    name = "channels"
    about = "Queues of the device."
    levels = "a number of combined channels, or a mapping such as {rx: 4, tx: 4}"
    op = "channels"
    plain = ("combined",)
