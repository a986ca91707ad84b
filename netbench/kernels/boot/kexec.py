"""From one kernel into another without the firmware: kexec(8)."""

from __future__ import annotations

from collections.abc import Sequence

from netbench.base.errors import BootError
from netbench.kernels.boot import copied, installed
from netbench.kernels.boot.boot_method import BootMethod, Target
from netbench.kernels.boot.machine import Machine, complaint
from netbench.kernels.boot.state import State
from netbench.model import Kernel

LOAD_SECONDS = 120.0
BY_KEXEC = "netbench.kexec=1"
"""Is on the command line of what kexec has booted, and not on that of a kernel of the same release
to which the firmware fell back. A parameter of no module: the kernel ignores it.
"""
# The session must end before its host goes down. The words are constant: they hold no value.
_JUMP = ("sh", "-c", "sync; (sleep 0.5; exec kexec -e) >/dev/null 2>&1 </dev/null &")
_REBOOT = ("sh", "-c", "sync; (sleep 0.5; exec reboot) >/dev/null 2>&1 </dev/null &")


class Kexec(BootMethod):
    """`kexec -s -l`, with `-c` as second try; `systemctl kexec` where systemd runs."""

    seconds = 300.0
    as_root = (
        "kexec -l IMAGE --command-line=LINE --initrd=INITRD",
        "systemctl kexec (or kexec -e)",
        "systemctl reboot (or reboot)",
        "mkinitramfs, with a link or a mount at /lib/modules/RELEASE, for kernels that are copied",
    )

    def why_not(self, machine: Machine, kernels: Sequence[Kernel]) -> str:
        if not machine.has("kexec"):
            return "the host has no kexec; install kexec-tools there, or name another boot method"
        switch = machine.attempt("cat", "/proc/sys/kernel/kexec_load_disabled", root=True)
        if switch.stdout.strip() == "1":
            return (
                "kexec is switched off until the next boot (sysctl kernel.kexec_load_disabled);"
                " name another boot method"
            )
        return installed.missing(machine, kernels)

    def prepare(self, machine: Machine, kernel: Kernel, original_kernel: State) -> Target:
        if kernel.release:
            chosen = installed.find(machine, kernel.release)
        elif kernel.image:
            if kernel.initrd and not machine.exists(kernel.initrd):
                raise BootError(
                    f"{machine.name}: {kernel.initrd} does not exist on the host; set `initrd:` to"
                    f" the initrd of {kernel.image}"
                )
            if not machine.exists(kernel.image):
                raise BootError(
                    f"{machine.name}: {kernel.image} does not exist on the host; `image:` is a path"
                    " on the host"
                )
            chosen = installed.Installed(
                copied.release_of(machine, kernel.image), kernel.image, kernel.initrd
            )
        else:
            chosen = copied.bring(machine, kernel, original_kernel)
        line = " ".join(f"{original_kernel.words} {kernel.append} {BY_KEXEC}".split())
        target = Target(kernel.name, chosen.release, chosen.image, chosen.initrd, line)
        self._load(machine, target)
        return target

    def prepare_original(self, machine: Machine, original_kernel: State) -> Target:
        """By kexec where possible, else by the firmware, whose default entry is unchanged."""
        try:
            chosen = installed.find(machine, original_kernel.release)
            if chosen.release != original_kernel.release:
                return Target("", original_kernel.release)
            words = original_kernel.words
            target = Target("", chosen.release, chosen.image, chosen.initrd, words)
            self._load(machine, target)
        except BootError:
            return Target("", original_kernel.release)
        return target

    def _load(self, machine: Machine, target: Target) -> None:
        """By kexec_file_load(2), which can check signatures; else by kexec_load(2)."""
        words = [
            f"--command-line={target.command_line}",
            *([f"--initrd={target.initrd}"] if target.initrd else ()),
        ]
        errors = []
        for how in ("-s", "-c"):
            done = machine.attempt(
                "kexec", how, "-l", target.image, *words, seconds=LOAD_SECONDS, root=True
            )
            if done.status == 0:
                return
            # among what it was about to load
            failed = [line for line in done.stderr.splitlines() if "failed" in line]
            errors.append(f"kexec {how}: {failed[-1] if failed else complaint(done)}")
        raise BootError(
            f"{machine.name}: cannot load {target.image}:"
            f" {'; '.join(errors)}{_lockdown(machine, errors)}"
        )

    def reboot(self, machine: Machine, target: Target) -> None:
        restart(machine, bool(target.image))

    def cancel(self, machine: Machine) -> None:
        machine.attempt("kexec", "-u", root=True)


def restart(machine: Machine, by_kexec: bool = False) -> None:
    """Boot what is loaded, or by the firmware. Errors: BootError; HostError."""
    if machine.exists("/run/systemd/system"):
        machine.run("systemctl", "--no-block", "kexec" if by_kexec else "reboot", root=True)
    else:
        machine.run(*(_JUMP if by_kexec else _REBOOT), root=True)


def _lockdown(machine: Machine, errors: Sequence[str]) -> str:
    modes = machine.attempt("cat", "/sys/kernel/security/lockdown").stdout.strip()
    locked = "[none]" not in modes if "[" in modes else "not permitted" in errors[-1]
    explanation = "is the kernel locked down (Secure Boot)?"
    if modes:
        explanation = f"the kernel is locked down ({modes})"
    return f"; {explanation}; sign the image, or name another boot method" if locked else ""
