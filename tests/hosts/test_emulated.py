"""The facts `emulated` and `lab_guest`: what guests of QEMU said of themselves, and this machine
against systemd-detect-virt(1).
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

import pytest

from netbench import campaign
from netbench.base.errors import EngineError
from netbench.facts.registry import BY_NAME, FACTS
from netbench.hosts.probe import Question, read_facts
from netbench.result.files import HostEntry
from netbench.run.host_facts import read_host
from netbench.run.worker_pool import WorkerPool

FACT = BY_NAME["emulated"]
FLAGS = "flags\t\t: fpu de pse tsc msr {}\n"
GUEST = FLAGS.format("hypervisor lahf_lm")
# qemu-system-x86_64 -accel tcg -cpu max, and -cpu Skylake-Server
MAX = f"model name\t: QEMU TCG CPU version 2.5+\n{GUEST}"
BY_NAME = f"model name\t: Intel Xeon Processor (Skylake)\n{GUEST}"
BARE = "model name\t: Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz\n" + FLAGS.format("lahf_lm")
ARM_MAX = "CPU implementer\t: 0x00\nCPU part\t: 0x051\n"
ARM = "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
TCG_CLOCKS, KVM_CLOCKS = "tsc hpet acpi_pm \n", "tsc kvm-clock \n"
HYPERV_CLOCKS = "hyperv_clocksource_tsc_page acpi_pm\n"


def told(cpu: str | None, virt: str | None, clocks: str | None) -> tuple[str | None, str]:
    """The fact, and why it is missing, on a host that gives these answers (None: it has none)."""
    asked = (source.target[0] for source in FACT.sources)
    answers = dict(zip(asked, (cpu, virt, clocks), strict=True))
    none = EngineError(1, 2, "read", "No such file or directory")

    def ask(questions: Sequence[Question]) -> list[str | EngineError]:
        found = (answers[target[0]] for _, target in questions)
        return [none if answer is None else answer for answer in found]

    known, missing = read_facts(ask, {}, [FACT])
    return known["emulated"], missing.get("emulated", "")


@pytest.mark.parametrize(
    ("cpu", "virt", "clocks", "emulated"),
    [
        (MAX, None, TCG_CLOCKS, "QEMU TCG"),
        # a guest of a guest: the name is the CPU's own word
        (MAX, "kvm\n", KVM_CLOCKS, "QEMU TCG"),
        (BY_NAME, "qemu\n", TCG_CLOCKS, "QEMU TCG"),
        (BY_NAME, None, KVM_CLOCKS, "no"),
        (BY_NAME, None, HYPERV_CLOCKS, "no"),
        (BY_NAME, None, TCG_CLOCKS, None),  # nothing tells
        (BARE, None, TCG_CLOCKS, "no"),
        (ARM_MAX, None, "arch_sys_counter \n", "QEMU TCG"),
        (ARM, "none\n", "arch_sys_counter \n", "no"),
        (None, "bochs\n", None, "Bochs"),
    ],
)
def test_what_hosts_say_of_themselves(
    cpu: str | None, virt: str | None, clocks: str | None, emulated: str | None
) -> None:
    value, why = told(cpu, virt, clocks)
    assert value == emulated
    assert bool(why) == (emulated is None)


def test_that_there_is_no_hypervisor_is_an_answer() -> None:
    none = EngineError(1, 0, "exec", "systemd-detect-virt: exit status 1: none")
    assert read_facts(lambda asked: [none] * len(asked), {}, [FACT])[0] == {"emulated": "no"}


@pytest.mark.parametrize(
    ("answer", "guest"),
    [
        ("NAME='a'\nDISK=''\nACCELERATOR='KVM, vhost-net'\n", "KVM, vhost-net"),
        ("NAME='a'\nACCELERATOR='QEMU TCG'\n", "QEMU TCG"),
        (EngineError(1, 2, "file", "/etc/netbench.guest: No such file or directory"), "no"),
        (EngineError(1, 13, "file", "/etc/netbench.guest: Permission denied"), None),
        ("NAME='a'\n", None),
    ],
)
def test_a_guest_of_a_lab_says_what_executes_it(
    answer: str | EngineError, guest: str | None
) -> None:
    fact = {found.name: found for found in FACTS}["lab_guest"]
    assert read_facts(lambda questions: [answer], {}, [fact])[0] == {"lab_guest": guest}
    entry = HostEntry(0, "", 100, {"lab_guest": guest})
    assert entry.is_virtual_machine == (guest is not None and "KVM" in guest)


@pytest.mark.skipif(
    shutil.which("systemd-detect-virt") is None, reason="no systemd-detect-virt here"
)
def test_this_machine_is_what_systemd_says() -> None:
    virt = subprocess.run(
        ["systemd-detect-virt", "--vm"], capture_output=True, text=True, check=False
    ).stdout.strip()
    here = campaign.parse("netbench: 1\nname: e\n", "e.yaml")
    with WorkerPool(here) as pool:
        entry = read_host(here, pool, "here")
    assert entry.facts["emulated"] == {"qemu": "QEMU TCG", "bochs": "Bochs"}.get(virt, "no")
    assert entry.is_emulated == (virt in ("qemu", "bochs"))
    assert entry.facts["lab_guest"] == "no"
    assert not entry.is_virtual_machine
