"""What `restore` shows of a journal, before or in place of acting on it."""

from __future__ import annotations

import pytest

from netbench import campaign
from netbench.result.journal import (
    Back,
    BootBegun,
    Booted,
    Change,
    Ended,
    Entry,
    Journal,
    MadeSink,
    ModulesHidden,
    ModulesShown,
    OriginalKernel,
    Restored,
)
from netbench.run.restore import restore_plan

CAMPAIGN = campaign.parse(
    """\
netbench: 1
name: r
ssh_config: ./config
hosts:
  snd: {ssh: root@snd, boot: {command: [/opt/boot, "a word"]}}
  rcv: {ssh: rcv, boot: grub}
transfer: {duration: 20ms}
""",
    "r.yaml",
)
CHANGE = Change(1, "rcv", "b", "mtu", "link", ("eth0", "mtu"), "9000", "1500\n")
COMMAND = Change(1, "rcv", "b", "mine", "exec", ("x",), "", "was\n", ("un", "do it"), ("cat", "f"))
ORIGINAL = OriginalKernel("snd", "b", "6.1", "quiet")
LINK = ModulesShown("rcv", "/lib/modules/a b", False)
MODULES = ModulesShown("rcv", "/lib/modules/6.12", True)
BOOTS_BACK = "boots back to 6.1, where it is not running: runs `/opt/boot 'a word'`"
CONNECTS = "rcv: connects to rcv by ./config"


@pytest.mark.parametrize(
    ("entries", "shown"),
    [
        ([CHANGE], [CONNECTS, "rcv: mtu: sets link eth0 mtu to '1500'"]),
        ([CHANGE, Restored((1,), "rcv")], []),
        ([CHANGE, Restored((1,), "snd")], [CONNECTS, "rcv: mtu: sets link eth0 mtu to '1500'"]),
        ([COMMAND], [CONNECTS, "rcv: mine: runs `cat f`; runs `un 'do it'`"]),
        ([ORIGINAL], ["snd: connects to root@snd by ./config", f"snd: {BOOTS_BACK}"]),
        ([ORIGINAL, Back("snd", "b")], []),
        ([MODULES], [CONNECTS, "rcv: unmounts /lib/modules/6.12"]),
        ([LINK], [CONNECTS, "rcv: removes the link '/lib/modules/a b'"]),
        ([MODULES, ModulesHidden("rcv", "/lib/modules/6.12")], []),
        ([Ended("lost"), MadeSink("/out", "rcv", "b", 1, 2), Booted(1, "rcv", "b", "6.1")], []),
        ([BootBegun(1, "k", "rcv", "6.1", "b"), Change(9, "other", "", "", "", (), "", "")], []),
    ],
)
def test_every_act_is_shown_with_its_host(entries: list[Entry], shown: list[str]) -> None:
    journal = Journal()
    for entry in entries:
        journal.write(entry)
    assert restore_plan(CAMPAIGN, journal) == shown
