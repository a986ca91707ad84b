"""The largest segment that the stack hands to the device."""

from netbench.settings.segment import SegmentSize


class GsoMaxSize(SegmentSize):
    name = "gso_max_size"
    about = (
        "Largest segment that the stack builds for the device; above 64K it is BIG TCP, for IPv4"
        " too."
    )
    key = "gso_max_size"
    key_ipv4 = "gso_ipv4_max_size"
