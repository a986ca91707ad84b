"""Checksums of what arrives are checked by the device."""

from netbench.settings.offload import Offload


class RxChecksum(Offload):
    name = "rx_checksum"
    about = "Checksums of what arrives are checked by the device."
    pattern = "rx-checksum"
