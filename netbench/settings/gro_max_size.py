"""The largest segment that the stack joins from what arrives."""

from netbench.settings.segment import SegmentSize


class GroMaxSize(SegmentSize):
    name = "gro_max_size"
    about = (
        "Largest segment that the stack joins from what arrives; above 64K it is BIG TCP, for IPv4"
        " too."
    )
    key = "gro_max_size"
    key_ipv4 = "gro_ipv4_max_size"
