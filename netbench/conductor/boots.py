"""The executor of Boot: every host of a campaign onto a kernel, and back on the one that it came
with.

The journal knows of each host what it came with before it is first touched, and of each boot when
it was begun (`boot`), when it was seen to have happened (`booted`), and when the host was back
(`back`): `resume` and `restore` need nothing else.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from netbench.boot import boot_method
from netbench.boot.base import BootMethod, Target
from netbench.boot.machine import Machine
from netbench.boot.state import State, is_of
from netbench.conductor.worker_pool import AT_ONCE, WorkerPool
from netbench.errors import BootError, EngineError, HostError, ProtocolError, WorkerLost
from netbench.journal import Back, BootBegun, Booted, Journal, OriginalKernel
from netbench.model import Campaign, Host, Kernel

ATTEMPTS = 2
GLANCE_SECONDS = 10.0  # a kernel that is going down accepts connections and answers nothing
PAUSE = 0.2  # between looks at a host that is on its way
# of the first look at a host that is on its way: one that is not there yet may take it and not
# answer
PATIENCE_SECONDS = 1.0
PATIENCE_GROWTH = 1.25
GOING_SECONDS = 60.0  # that a host may take to go down
LEAVING_SECONDS = 5.0  # that a host which was told to boot may still answer
CONSOLE_LINES = 8
PANIC = "Kernel panic - not syncing"
_DIGITS = re.compile(r"\d+")
LOST = (HostError, WorkerLost, ProtocolError, TimeoutError)


def are_wanted(campaign: Campaign) -> bool:
    """Whether a campaign boots its hosts."""
    return bool(campaign.kernels) or campaign.repeat.boots > 1


class Boots:
    """Boots of a campaign's hosts. `say` gets lines for the log and the terminal."""

    def __init__(
        self,
        campaign: Campaign,
        pool: WorkerPool,
        journal: Journal,
        say: Callable[[str], None],
    ) -> None:
        self._campaign = campaign
        self._pool = pool
        self._journal = journal
        self._say = say
        self._hosts = [campaign.hosts[name] for name in campaign.roles]
        self._methods: dict[str, BootMethod] = {
            host.name: boot_method(host.boot.kind) for host in self._hosts
        }
        # Hosts of a campaign's own lab are new ones.
        self._original: dict[str, State] = {} if campaign.lab else original_states(journal)
        self._gone: set[str] = set()  # hosts that were waited for in vain
        self._silent: set[str] = set()  # hosts that did not answer when they were last looked at
        self._stop = threading.Event()
        self.number = journal.last_boot()

    def why_not(self) -> dict[str, str]:
        """Why hosts cannot be booted, by host. Errors: HostError."""
        kernels = list(self._campaign.kernels.values())
        found: dict[str, str] = {}
        kernel_of: dict[str, str] = {}
        for host in self._hosts:
            if host.local:
                found[host.name] = (
                    "this is the machine that netbench runs on, which cannot boot itself; name"
                    " hosts with ssh, or lab: qemu"
                )
                continue
            machine = self._machine(host)
            boot_id = machine.state().boot_id
            mate = kernel_of.setdefault(boot_id, host.name)
            if boot_id == _own_boot_id():
                found[host.name] = (
                    "it shares the kernel of the machine that netbench runs on; lab: qemu has hosts"
                    " with their own"
                )
            elif mate != host.name:
                found[host.name] = (
                    f"it shares a kernel with {mate}; name hosts with kernels of their own"
                )
            elif why := self._methods[host.name].why_not(machine, kernels):
                found[host.name] = why
        return found

    def bring_up(self, kernel: str, accept: Callable[[int], str]) -> int:
        """Boot every host on a kernel ("": the one that it came with); the boot's number.

        `accept` is asked about the boot with that number once all hosts are there, and says what is
        wrong. Errors: BootError when that did not work; hosts that were booted are then back on
        what they came with. HostError when that did not work either.
        """
        for host in self._hosts:
            self._remember(host)
        wanted = self._campaign.kernels.get(kernel)
        targets = self._prepared(wanted)
        self.number += 1
        failed = self._attempts(targets, wanted)
        for attempt in range(ATTEMPTS):
            why = "" if failed else self._asked(accept)
            if not failed and not why:
                return self.number
            if failed or attempt + 1 == ATTEMPTS:
                failed = failed or {"": why}
                break
            self._say(f"boot {self.number}, once more: {why}")
            try:
                failed = self._attempts(self._prepared(wanted), wanted)
            except BootError as error:
                failed = {"": f"{why}; it could not be booted once more: {error}"}
        reason = joined(failed.values())
        self._say(f"kernel {kernel or 'as it came'}, going back: {reason.partition(chr(10))[0]}")
        try:
            self.back()
        except HostError as error:
            raise HostError(
                joined((str(error), f"before, on kernel {kernel or 'as it came'}: {reason}"))
            ) from error
        raise BootError(reason)

    def _asked(self, accept: Callable[[int], str]) -> str:
        try:
            return accept(self.number)
        except (*LOST, EngineError) as error:
            return str(error)

    def _prepared(self, kernel: Kernel | None) -> dict[str, Target]:
        """What each host is to boot. Errors: BootError with what is wrong on any of them; nothing
        has happened yet.
        """
        found: dict[str, Target] = {}

        def prepare(host: Host) -> None:
            found[host.name] = self._methods[host.name].prepare(
                self._machine(host), kernel, self._original[host.name]
            )

        try:
            errors = self._together(prepare, self._hosts)
        except BaseException:
            self._cancel(self._hosts)
            raise
        if errors:
            self._cancel(self._hosts)
            raise BootError(joined(errors.values()))
        return found

    def _cancel(self, hosts: Iterable[Host]) -> None:
        """Nothing is left on hosts of boots that do not happen, or have happened, as far as they
        can be reached.
        """

        def cancel(host: Host) -> None:
            self._methods[host.name].cancel(self._machine(host))

        self._together(cancel, hosts)

    def _attempts(self, targets: Mapping[str, Target], kernel: Kernel | None) -> dict[str, str]:
        """Boot the hosts, those that fail once more; what is wrong with those that failed again."""
        left = list(self._hosts)
        errors: dict[str, str] = {}
        for attempt in range(ATTEMPTS):
            ready = dict(targets)

            def boot(host: Host, attempt: int = attempt, ready: dict[str, Target] = ready) -> None:
                if attempt:
                    ready[host.name] = self._methods[host.name].prepare(
                        self._machine(host), kernel, self._original[host.name]
                    )
                self._boot(host, ready[host.name])

            now = self._together(boot, left)
            errors = {
                name: why
                for name, why in errors.items()
                if name not in {host.name for host in left}
            } | now
            left = [
                host
                for host in left
                if host.name in now
                and (self._methods[host.name].remote or host.name not in self._gone)
            ]
            if not left or attempt + 1 == ATTEMPTS:
                break
            self._say(
                f"boot {self.number}, once more: {joined(errors[host.name] for host in left)}"
            )
        return errors

    def _boot(self, host: Host, target: Target) -> None:
        """One host onto its target. Errors: BootError, HostError."""
        before = self._last_boot_id(host)
        self._refuse_own(host, before)
        if self._stop.is_set():
            raise BootError(f"{host.name}: interrupted before it was booted")
        self._journal.write(
            BootBegun(
                number=self.number,
                kernel=target.name,
                host=host.name,
                release=target.release,
                boot_id=before,
            )
        )
        self._pool.release(host.name)
        stale = self._methods[host.name].console(host)
        self._methods[host.name].reboot(self._machine(host), target)
        self._pool.disconnect(host.name)
        state = self._awaited(host, before, stale=stale)
        if state is None:
            raise BootError(
                f"{host.name}: {self._absent(host, before, stale)}{self._console(host)}"
            )
        if not target.matches(state):
            other = _other(state, target.release, target.command_line or target.append)
            raise BootError(f"{host.name}: it came up on {other}{self._console(host)}")
        self._cancel([host])
        self._journal.write(Booted(self.number, host.name, state.boot_id, state.release))

    @staticmethod
    def _refuse_own(host: Host, boot_id: str) -> None:
        """The machine that netbench runs on is never booted, wherever a host's name leads. Errors:
        BootError.
        """
        if boot_id == _own_boot_id():
            raise BootError(
                f"{host.name}: it shares the kernel of the machine that netbench runs on, which is"
                " not booted"
            )

    def _last_boot_id(self, host: Host) -> str:
        """The boot that a host is in, or, where it does not answer, was in when it last did."""
        state = None if host.name in self._silent else self._glance(host)
        if state is not None:
            return state.boot_id
        return self._known_boot_id(host)

    def _known_boot_id(self, host: Host) -> str:
        """The boot that a host was last seen in."""
        return self._journal.seen_boot_id(host.name) or self._original[host.name].boot_id

    def _awaited(
        self,
        host: Host,
        before: str,
        seconds: float | None = None,
        stale: Sequence[str] | None = None,
    ) -> State | None:
        """What a host runs once it is in another boot than before; None when its time is up, or its
        kernel cannot come up.

        `stale` is what its console ended with before, where it can be sent on its way again
        whatever it does.
        """
        deadline = time.monotonic() + (self._seconds(host) if seconds is None else seconds)
        patience = PATIENCE_SECONDS
        while not self._stop.is_set():
            state = self._glance(host, patience)
            if state is not None and state.boot_id != before:
                return state
            patience = min(patience * PATIENCE_GROWTH, GLANCE_SECONDS)
            if time.monotonic() > deadline or (stale is not None and self._panicked(host, stale)):
                return None
            self._stop.wait(PAUSE)
        raise BootError(f"{host.name}: interrupted while it was booted")

    def _panicked(self, host: Host, stale: Sequence[str]) -> bool:
        """Whether there is no use in waiting: the console tells of a panic, and the host can be
        booted without its help.
        """
        method = self._methods[host.name]
        return method.remote and any(
            PANIC in line and line not in stale for line in method.console(host)
        )

    def _absent(self, host: Host, before: str, stale: Sequence[str]) -> str:
        """Why a host is not where it should be."""
        if self._panicked(host, stale):
            return "its kernel panicked"
        state = self._glance(host)
        if state is not None and state.boot_id == before:
            return f"it was told to boot, but did not do so within {self._seconds(host):.0f} s"
        self._gone.add(host.name)
        return f"it did not come back within {self._seconds(host):.0f} s"

    def _glance(self, host: Host, seconds: float = GLANCE_SECONDS) -> State | None:
        """What a host runs, if it says so soon."""
        try:
            state = self._machine(host).state(seconds)
        except HostError:
            self._pool.disconnect(host.name)
            self._silent.add(host.name)
            return None
        self._silent.discard(host.name)
        self._gone.discard(host.name)
        return state

    def _seconds(self, host: Host) -> float:
        return host.boot.deadline / 1e9 if host.boot.deadline else self._methods[host.name].seconds

    def _console(self, host: Host) -> str:
        lines = excerpt([line for line in self._methods[host.name].console(host) if line.strip()])
        return "".join(f"\n  console of {host.name}: {line}" for line in lines)

    def _machine(self, host: Host) -> Machine:
        return Machine(host, self._pool.channel(host.name))

    def _remember(self, host: Host) -> None:
        """What a host came with, known to the journal before the host is touched, again after it
        was back.

        Errors: HostError; BootError.
        """
        state = self._original.get(host.name)
        if state is None:
            state = self._machine(host).state()
            self._refuse_own(host, state.boot_id)
        elif not isinstance(self._journal.boot_of(host.name), Back):
            return
        self._journal.write(
            OriginalKernel(host.name, state.boot_id, state.release, state.command_line)
        )
        self._original[host.name] = state

    def settle(self) -> list[str]:
        """After a controller died: wait for hosts that it was booting. Those that do not answer in
        time are booted back.

        What was done to these. Errors: BootError, HostError.
        """
        said: list[str] = []
        begun = [
            host for host in self._hosts if host.name in self._original and self._is_under_way(host)
        ]

        def settle(host: Host) -> None:
            before = self._journal.left_boot_id(host.name)
            if (
                self._awaited(host, before, LEAVING_SECONDS) is None
                and self._awaited(host, "", stale=()) is None
            ):
                self._gone.add(host.name)
                said.append(self._back(host))

        errors = self._together(settle, begun)
        if errors:
            raise BootError(joined([*said, *errors.values()]))
        return said

    def back(self) -> list[str]:
        """Hosts that were booted, back on the kernel that they came with; what was done. Errors:
        HostError with the others.
        """
        self._stop.clear()
        touched = self.touched()
        said: dict[str, str] = {}

        def back(host: Host) -> None:
            if line := self._back(host):
                said[host.name] = line

        errors = self._together(back, touched)
        lines = [said[host.name] for host in touched if host.name in said]
        if errors:
            raise HostError(joined([*lines, *errors.values()]))
        return lines

    def touched(self) -> list[Host]:
        """Hosts of which it is known what they came with."""
        return [host for host in self._hosts if host.name in self._original]

    def _back(self, host: Host) -> str:
        """One host back on the kernel that it came with; what was done. Errors: BootError,
        HostError.
        """
        original_kernel = self._original[host.name]
        if not isinstance(self._journal.boot_of(host.name), BootBegun | Booted):
            self._cancel([host])
            return ""
        state = self._left(host) or self._present(host)
        if state is not None:
            self._refuse_own(host, state.boot_id)
        booted = state is None or not state.same_kernel(original_kernel)
        before = self._known_boot_id(host)
        for attempt in range(ATTEMPTS if booted else 0):
            before = state.boot_id if state else before
            try:
                target = self._methods[host.name].prepare_original(
                    self._machine(host), original_kernel
                )
                self._pool.release(host.name)
                stale = self._methods[host.name].console(host)
                self._methods[host.name].reboot(self._machine(host), target)
            except (BootError, HostError) as error:
                raise BootError(
                    f"{host.name}: it is not back on {original_kernel.release}: {error}"
                ) from error
            self._pool.disconnect(host.name)
            state = self._awaited(host, before, stale=stale)
            if state is not None and state.same_kernel(original_kernel):
                break
            if attempt + 1 == ATTEMPTS:
                now = (
                    f"it came up on {_other(state, original_kernel.release, original_kernel.words)}"
                    if state
                    else self._absent(host, before, stale)
                )
                raise BootError(
                    f"{host.name}: it is not back on {original_kernel.release}:"
                    f" {now}{self._console(host)}"
                )
        assert state is not None
        self._cancel([host])
        self._journal.write(Back(host.name, state.boot_id))
        return f"{host.name}: {'back' if booted else 'is'} on {original_kernel.release}"

    def _is_under_way(self, host: Host) -> bool:
        """Whether a host was told to boot and not seen to have booted."""
        return isinstance(self._journal.boot_of(host.name), BootBegun)

    def _left(self, host: Host) -> State | None:
        """What a host runs that was told to boot and may not have left yet; None where it is not
        seen in another boot.
        """
        if not self._is_under_way(host) or host.boot.kind == "qemu" or host.name in self._gone:
            return None
        return self._awaited(
            host,
            self._journal.left_boot_id(host.name),
            min(self._seconds(host), GOING_SECONDS),
            stale=(),
        )

    def _present(self, host: Host) -> State | None:
        """What a host runs, waiting for it where nobody can boot it without its help, but never
        twice in vain.
        """
        if self._methods[host.name].remote and host.name in self._silent:
            return None
        state = self._glance(host)
        return (
            state
            if state or self._methods[host.name].remote or host.name in self._gone
            else self._awaited(host, "")
        )

    def _together(self, act: Callable[[Host], None], hosts: Iterable[Host]) -> dict[str, str]:
        """Do something for hosts at the same time; what went wrong, by host. Ctrl-C ends the
        waiting in all of them.
        """
        errors: dict[str, str] = {}

        def guarded(host: Host) -> None:
            try:
                act(host)
            except (BootError, *LOST) as error:
                text = str(error)
                errors[host.name] = text if text.startswith(host.name) else f"{host.name}: {text}"

        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="boot") as pool:
            waiting = [pool.submit(guarded, host) for host in hosts]
            try:
                for one in waiting:
                    one.result()
            except BaseException:
                self._stop.set()
                raise
        return errors


def _other(state: State, release: str, words: str) -> str:
    """What came up in place of a release with a command line."""
    if is_of(state.release, release):
        return f"{state.release} with the command line `{state.words}`, not with `{words}`"
    return f"{state.release}, not on {release}"


def excerpt(lines: Sequence[str]) -> list[str]:
    """What of a console's last lines tells why: what is around a panic, else the very last. What is
    said again is left out.
    """
    once = list({_DIGITS.sub("", line): line for line in reversed(lines)}.values())[::-1]
    panic = max((at for at, line in enumerate(once) if PANIC in line), default=None)
    return (
        once[-CONSOLE_LINES:]
        if panic is None
        else once[max(0, panic - CONSOLE_LINES // 2) :][:CONSOLE_LINES]
    )


def joined(reasons: Iterable[str]) -> str:
    """Reasons in one line, with what belongs to them in the lines after it."""
    parts = [reason.partition("\n") for reason in reasons]
    return "\n".join(
        ["; ".join(head for head, _, _ in parts), *(rest for _, _, rest in parts if rest)]
    )


def _own_boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def original_states(journal: Journal) -> dict[str, State]:
    """What hosts ran before they were booted, of those that are not back on it, by host."""
    return {
        host: State(kernel.boot_id, kernel.release, kernel.command_line)
        for host, kernel in journal.original_kernels().items()
    }
