"""A combination of levels -> a cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from netbench.campaign.edit import BOUNDS
from netbench.campaign.factors import KERNEL, METERS, OWN_KEYS, Reader
from netbench.campaign.matrix import Combination, cell_id
from netbench.campaign.schema.transfer import REQUESTS, SIZES, meaning
from netbench.campaign.schema.transfer_values import PerSecond
from netbench.engine.catalogue import Catalogue
from netbench.model import Cell, Transfer


def build(
    base: Mapping[str, Any], combination: Combination, reader: Reader, catalogue: Catalogue
) -> Cell:
    """The cell of a combination: its levels over the one level of each key in `base`."""
    values = dict(base)
    if combination.keys() & {*BOUNDS}:
        values = {key: value for key, value in values.items() if key not in BOUNDS}
    values |= {key: level.value for key, level in combination.items() if reader.transfers(key)}
    if REQUESTS & values.keys() or isinstance(values.get("rate"), PerSecond):
        calls = {"send": Transfer().send, "receive": Transfer().receive}
        method = "request" if values.get("mode", "rr") == "rr" else "connect"
        values |= {side: method for side, call in calls.items() if values.get(side, call) == call}
    methods = (
        catalogue.send.get(values.get("send", Transfer().send)),
        catalogue.receive.get(values.get("receive", Transfer().receive)),
    )
    options = [row.name for method in methods if method for row in method.options]
    options += [name for name in SIZES if methods[0] and methods[0].has("requests")]
    kernel = combination.get(KERNEL)
    return Cell(
        id=cell_id(combination),
        factors={key: level.word for key, level in combination.items()},
        transfer=meaning(values, options),
        settings={
            key: level.value
            for key, level in combination.items()
            if not reader.transfers(key) and key not in OWN_KEYS
        },
        kernel=kernel.word if kernel else None,
        meters=combination[METERS].value if METERS in combination else None,
    )
