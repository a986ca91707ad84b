"""How long and for how many packets the device waits before it interrupts."""

from netbench.settings.parameters import Parameters


class Coalesce(Parameters):
    name = "coalesce"
    about = "How long and for how many packets the device waits before it interrupts."
    levels = (
        "microseconds for both directions, or a mapping such as {rx_usecs: 50, adaptive_rx: off}"
    )
    op = "coalesce"
    plain = ("rx_usecs", "tx_usecs")
    cost = "run"
