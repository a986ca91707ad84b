"""Checksums of what is sent are computed by the device."""

from netbench.settings.offload import Offload


class TxChecksum(Offload):
    name = "tx_checksum"
    about = "Checksums of what is sent are computed by the device."
    pattern = "tx-checksum-*"
