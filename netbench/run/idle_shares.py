"""What soakers lose on an idle CPU of this machine, kept for as long as it is up: a file of the
account.

It only serves `meter soak`; what a campaign needs is in its records. A file that cannot be read or
written is as none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, fields
from pathlib import Path

from netbench.base.errors import StoreError
from netbench.base.ownership import refuse_foreign
from netbench.read.soak import Soaked, quieter
from netbench.result.campaign_state import state_folder

NUMBERS = len(fields(Soaked))  # of a Soaked


def _file() -> Path:
    return state_folder() / "soak.json"


def read(boot_id: str, footprint: int) -> Mapping[int, Soaked]:
    """What was kept in this boot for soakers of that footprint, by CPU."""
    try:
        refuse_foreign(_file())
        kept = json.loads(_file().read_bytes())
        if kept["boot_id"] != boot_id or kept["footprint"] != footprint:
            return {}
        return {int(cpu): _soaked(numbers) for cpu, numbers in kept["cpus"].items()}
    except (OSError, RuntimeError, StoreError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _soaked(numbers: Sequence[int]) -> Soaked:
    """Errors: ValueError for numbers that no soaker counts."""
    if len(numbers) != NUMBERS or not all(type(number) is int for number in numbers):
        raise ValueError("not what a soaker counts")
    soaked = Soaked(*numbers)
    if not 0 <= soaked.taken < soaked.elapsed or min(numbers) < 0:
        raise ValueError("not what a soaker counts")
    return soaked


def keep(boot_id: str, footprint: int, cpus: Mapping[int, Soaked]) -> None:
    """Keep what was counted on idle CPUs, with no more of other processes than was kept before."""
    before = read(boot_id, footprint)
    known = {**before, **{cpu: quieter(now, before.get(cpu)) for cpu, now in cpus.items()}}
    text = json.dumps(
        {
            "boot_id": boot_id,
            "footprint": footprint,
            "cpus": {cpu: astuple(soaked) for cpu, soaked in known.items()},
        }
    )
    with suppress(OSError, RuntimeError):
        file = _file()
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = file.with_name(f".soak.{os.getpid()}")
        draft.write_text(text)
        draft.chmod(0o600)
        draft.rename(file)
