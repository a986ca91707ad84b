"""One host of a campaign that boots: onto a kernel, and back on the one that it ran before.

The journal knows the original kernel before the first change, and each boot when it is begun, when
it is seen to have happened, and when the host is back: `resume` and `restore` need nothing else.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import cast

from netbench.base.errors import BootError, HostError, Lost
from netbench.hosts.host_channel import RemoteChannel
from netbench.kernels.boot import boot_method
from netbench.kernels.boot.boot_method import Target
from netbench.kernels.boot.console import excerpt, panicked
from netbench.kernels.boot.machine import Machine
from netbench.kernels.boot.state import State, is_of
from netbench.model import Host, Kernel
from netbench.result.journal import (
    Back,
    BootBegun,
    Booted,
    Journal,
    ModulesHidden,
    ModulesShown,
    OriginalKernel,
    machine_of,
)
from netbench.run.host_facts import own_boot_id
from netbench.run.worker_pool import WorkerPool

ATTEMPTS = 2
PAUSE = 0.2  # between looks at a host that boots
# Of the first look at a host that boots: a dying kernel may accept a connection and not answer.
LOOK_SECONDS = 1.0
LOOK_GROWTH = 1.25
MOST_LOOK_SECONDS = 10.0
GOING_SECONDS = 60.0  # that a host may take to go down
LEAVING_SECONDS = 5.0  # that a host which was told to boot may still answer


class BootingHost:
    """A host, the way in which it boots, and what it ran before the first boot (`original`: None
    until that is known). `interrupted` ends all waiting.
    """

    def __init__(
        self, host: Host, pool: WorkerPool, journal: Journal, interrupted: threading.Event
    ) -> None:
        self.host = host
        self.name = host.name
        self.method = boot_method(host.boot.kind)
        self.original: State | None = None
        self._pool = pool
        self._journal = journal
        self._interrupted = interrupted
        self._gone = False  # it was waited for in vain
        self._silent = False  # it did not answer when it was last looked at

    @property
    def machine(self) -> Machine:
        """The host as its boot method reaches it."""
        channel = cast(RemoteChannel, self._pool.channel(self.name))
        return Machine(self.host, channel, lambda: self._pool.helper(self.name), self._note_modules)

    def _note_modules(self, place: str, mounted: bool, shown: bool) -> None:
        if shown:
            self._journal.write(ModulesShown(self.name, place, mounted, self._of_machine))
        else:
            self._journal.write(ModulesHidden(self.name, place))

    @property
    def _of_machine(self) -> str:
        return machine_of(self._pool.host_worker(self.name).hello.machine)

    def _hide_modules(self) -> str:
        """Take away what a controller left that died while an initrd was made. What was done, or
        "". Errors: BootError; HostError.
        """
        hidden = [
            shown.place
            for shown in self._journal.modules_shown(self.name)
            if self.machine.hide_modules(shown.place, shown.mounted)
        ]
        return f"{self.name}: removed the modules at {', '.join(hidden)}" if hidden else ""

    @property
    def can_boot(self) -> bool:
        """Whether it can be booted (again): it answers, or its boot method needs no answer."""
        return self.method.remote or not self._gone

    @property
    def is_under_way(self) -> bool:
        """Whether it was told to boot and not seen to have booted."""
        return isinstance(self._journal.boot_of(self.name), BootBegun)

    def remember(self) -> None:
        """Journal the original kernel before the host is changed, again after it was back. Errors:
        HostError; BootError.
        """
        if self.original is None:
            self.original = self.machine.state()
            self._refuse_own(self.original.boot_id)
        elif not isinstance(self._journal.boot_of(self.name), Back):
            return
        kernel = self.original
        words = kernel.boot_id, kernel.release, kernel.command_line
        self._journal.write(OriginalKernel(self.name, *words, self._of_machine))

    def prepare(self, kernel: Kernel | None) -> Target:
        """What it is to boot (None: its original kernel). Errors: BootError; HostError."""
        self._hide_modules()
        original = self._known_original
        if kernel is None:
            return self.method.prepare_original(self.machine, original)
        return self.method.prepare(self.machine, kernel, original)

    def cancel(self) -> None:
        """Leave nothing of a boot that does not happen, or has happened. Errors: HostError."""
        self.method.cancel(self.machine)

    def boot(self, target: Target, number: int) -> None:
        """Boot the target, as the boot with that number. Errors: BootError; HostError."""
        state = None if self._silent else self._look()
        before = state.boot_id if state else self._seen_boot_id()
        self._refuse_own(before)
        if self._interrupted.is_set():
            raise BootError(f"{self.name}: not booted: the campaign was interrupted")
        begun = BootBegun(number, target.name, self.name, target.release, before)
        self._journal.write(begun)
        stale = self._go(target)
        state = self._wait_for_boot(before, stale=stale)
        if state is None:
            raise BootError(f"{self.name}: {self._why_absent(before, stale)}{self._console()}")
        if not target.matches(state):
            other = _other(state, target.release, target.command_line or target.append)
            raise BootError(f"{self.name}: it booted {other}{self._console()}")
        self._try_to_cancel()
        self._journal.write(Booted(number, self.name, state.boot_id, state.release))

    def boot_back(self) -> str:
        """Back on the original kernel; what was done, or "". Errors: BootError; HostError."""
        original = self._known_original
        if not isinstance(self._journal.boot_of(self.name), BootBegun | Booted):
            hidden = self._hide_modules()
            if self.name in self._journal.original_kernels():  # it was never told to boot
                self.cancel()
                if not (now := self.machine.state()).same_kernel(original):
                    what = f"it runs {now.release}, and was not told to boot that"
                    raise BootError(f"{self.name}: {what}; boot it on {original.release}")
                self._journal.write(Back(self.name, now.boot_id))
            return hidden
        state = self._after_leaving() or self._present()
        if state is not None:
            self._refuse_own(state.boot_id)
        booted = state is None or not state.same_kernel(original)
        if booted:
            state = self._boot_original(original, state)
        assert state is not None
        self._try_to_cancel()
        hidden = self._hide_modules()
        self._journal.write(Back(self.name, state.boot_id))
        back = f"{self.name}: {'back' if booted else 'is'} on {original.release}"
        return f"{back}\n{hidden}" if hidden else back

    def _boot_original(self, original: State, state: State | None) -> State:
        """Boot the original kernel, twice at most. Errors: BootError."""
        lost = f"{self.name}: not restored to its original kernel {original.release}"
        before = self._seen_boot_id()
        stale: Sequence[str] = ()
        for _ in range(ATTEMPTS):
            before = state.boot_id if state else before
            try:
                target = self.method.prepare_original(self.machine, original)
                stale = self._go(target)
            except (BootError, HostError) as error:
                raise BootError(f"{lost}: {error}") from error
            state = self._wait_for_boot(before, stale=stale)
            if state is not None and state.same_kernel(original):
                return state
        if state:
            now = f"it booted {_other(state, original.release, original.words)}"
        else:
            now = self._why_absent(before, stale)
        raise BootError(f"{lost}: {now}{self._console()}")

    def wait_after_crash(self) -> str:
        """After a controller died that was booting it: wait for it, and boot it back where it does
        not come. What was done, or "". Errors: BootError; HostError.
        """
        before = self._journal.left_boot_id(self.name)
        if self._wait_for_boot(before, LEAVING_SECONDS) or self._wait_for_boot("", stale=()):
            return ""
        self._gone = True
        return self.boot_back()

    @property
    def _known_original(self) -> State:
        assert self.original is not None, "remember() comes first"
        return self.original

    def _go(self, target: Target) -> Sequence[str]:
        """Boot a target; what the console ended with before. Errors: BootError; HostError."""
        self._pool.release(self.name)
        stale = self.method.console(self.host)
        self.method.reboot(self.machine, target)
        self._pool.release(self.name, wait=False)
        self._pool.disconnect(self.name)
        return stale

    def _try_to_cancel(self) -> None:
        try:
            self.cancel()
        except (BootError, Lost, TimeoutError):
            return  # what is left is found by the next boot

    def _refuse_own(self, boot_id: str) -> None:
        """The machine that netbench runs on is never booted. Errors: BootError."""
        if boot_id == own_boot_id():
            raise BootError(
                f"{self.name}: it runs on the controller's own kernel, which netbench does not"
                " boot; use another host"
            )

    def _seen_boot_id(self) -> str:
        """The boot that it was last seen in."""
        return self._journal.seen_boot_id(self.name) or self._known_original.boot_id

    def _wait_for_boot(
        self, before: str, seconds: float | None = None, stale: Sequence[str] | None = None
    ) -> State | None:
        """What it runs once it is in another boot than before; None when the time is up, or its
        kernel cannot come up.

        `stale` is what its console ended with before, where a panic ends the waiting. Errors:
        BootError when the user interrupts.
        """
        deadline = time.monotonic() + (self._deadline_seconds if seconds is None else seconds)
        look_seconds = LOOK_SECONDS
        while not self._interrupted.is_set():
            state = self._look(look_seconds)
            if state is not None and state.boot_id != before:
                return state
            look_seconds = min(look_seconds * LOOK_GROWTH, MOST_LOOK_SECONDS)
            if time.monotonic() > deadline or (stale is not None and self._has_panicked(stale)):
                return None
            self._interrupted.wait(PAUSE)
        raise BootError(f"{self.name}: the campaign was interrupted during its boot")

    def _has_panicked(self, stale: Sequence[str]) -> bool:
        """Whether waiting is of no use: a panic, and the host can be booted without its help."""
        return self.method.remote and panicked(self.method.console(self.host), stale)

    def _why_absent(self, before: str, stale: Sequence[str]) -> str:
        if self._has_panicked(stale):
            return "its kernel panicked"
        seconds = f"within {self._deadline_seconds:.0f} s"
        state = self._look()
        if state is not None and state.boot_id == before:
            return f"it was told to boot, but did not do so {seconds}"
        self._gone = True
        return f"it did not come back {seconds}"

    def _look(self, seconds: float = MOST_LOOK_SECONDS) -> State | None:
        """What it runs, if it says so within that time."""
        try:
            state = self.machine.state(seconds)
        except HostError:
            self._pool.disconnect(self.name)
            self._silent = True
            return None
        self._silent = self._gone = False
        return state

    @property
    def _deadline_seconds(self) -> float:
        """How long a boot may take."""
        deadline = self.host.boot.deadline
        return deadline / 1e9 if deadline else self.method.seconds

    def last_words(self) -> str:
        """What its console ended with, where it is not in the boot any more that it was seen in."""
        state = self._look()
        return "" if state and state.boot_id == self._seen_boot_id() else self._console()

    def _console(self) -> str:
        lines = excerpt([line for line in self.method.console(self.host) if line.strip()])
        return "".join(f"\n  console of {self.name}: {line}" for line in lines)

    def _after_leaving(self) -> State | None:
        """What it runs, where it was told to boot and may not have left yet; None where it is not
        seen in another boot.
        """
        if not self.is_under_way or self.host.boot.kind == "qemu" or self._gone:
            return None
        before = self._journal.left_boot_id(self.name)
        return self._wait_for_boot(before, min(self._deadline_seconds, GOING_SECONDS), stale=())

    def _present(self) -> State | None:
        """What it runs, waited for where nothing boots it without its help, never twice in vain."""
        if self.method.remote and self._silent:
            return None
        state = self._look()
        if state or not self.can_boot or self.method.remote:
            return state
        state = self._wait_for_boot("")
        self._gone = state is None
        return state


def _other(state: State, release: str, words: str) -> str:
    """What booted instead of a release with a command line."""
    if is_of(state.release, release):
        return f"{state.release} with the command line `{state.words}` instead of `{words}`"
    return f"{state.release} instead of {release}"
