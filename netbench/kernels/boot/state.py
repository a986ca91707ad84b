"""What a host runs: which boot, which kernel."""

from __future__ import annotations

from typing import NamedTuple

FILES = ("/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/osrelease", "/proc/cmdline")
"""What a state is read from, a line each."""
_LOADER_WORDS = ("BOOT_IMAGE=", "initrd=")  # the boot loader's own, without effect in the kernel


class State(NamedTuple):
    """The boot id, the release of the kernel (`uname -r`) and its command line."""

    boot_id: str
    release: str
    command_line: str

    def same_kernel(self, other: State) -> bool:
        """Whether the same kernel runs with the same command line, in whatever boot."""
        return (self.release, self.words) == (other.release, other.words)

    @property
    def words(self) -> str:
        """The command line without the words that the boot loader adds."""
        return " ".join(
            word for word in self.command_line.split() if not word.startswith(_LOADER_WORDS)
        )


def is_of(release: str, wanted: str) -> bool:
    """Whether a release is the wanted one, or begins with it where a number ends: 6.1.9 is of 6.1,
    6.12.3 is not.
    """
    return release == wanted or (
        release.startswith(wanted)
        and not (wanted[-1:].isdecimal() and release[len(wanted)].isdecimal())
    )
