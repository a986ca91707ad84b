"""Boots of a campaign's hosts, all at the same time: onto a kernel, and back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial

from netbench.base.cancel import side_by_side
from netbench.base.errors import BootError, EngineError, HostBusy, HostError, Lost, WorkerLost
from netbench.kernels.boot import boot_method
from netbench.kernels.boot.acceptance import wait_until_ready
from netbench.kernels.boot.boot_method import Target
from netbench.kernels.boot.booting_host import BootingHost
from netbench.kernels.boot.state import State
from netbench.model import Campaign, Kernel
from netbench.plan.plan import Boot
from netbench.result.files import HostEntry, Hosts
from netbench.result.journal import BootBegun, Journal
from netbench.run.finding import Finding
from netbench.run.host_facts import own_boot_id
from netbench.run.worker_pool import AT_ONCE, WorkerPool


class Boots:
    """Boots of a campaign's hosts. `say` gets lines for the log and the terminal; `number` is that
    of the last boot. `lock` locks a host: one that another campaign uses is not booted.
    """

    def __init__(
        self,
        campaign: Campaign,
        pool: WorkerPool,
        journal: Journal,
        say: Callable[[str], None],
        lock: Callable[[str], None] = lambda host: None,
    ) -> None:
        self._campaign, self._lock = campaign, lock
        self._pool = pool
        self._kernels = campaign.kernels
        self._builds = campaign.builds
        self._say = say
        self._interrupted = threading.Event()
        self._hosts = [
            BootingHost(campaign.hosts[name], pool, journal, self._interrupted)
            for name in campaign.roles
        ]
        self.number = journal.last_number(BootBegun)
        if not campaign.lab:  # whose hosts are new ones
            originals = original_states(journal)
            for host in self._hosts:
                host.original = originals.get(host.name)

    def check(self) -> Iterator[Finding]:
        """Hosts that cannot be booted on the campaign's kernels, and what takes root on the others.
        Errors: HostError.
        """
        why_not = self.why_not()
        for name, why in why_not.items():
            yield Finding("error", name, f"cannot be booted: {why}")
        for host in self._hosts:
            if host.name not in why_not:
                for program in boot_method(host.host.boot.kind).as_root:
                    yield Finding("ok", host.name, f"needs root: boot {program}")

    def why_not(self) -> dict[str, str]:
        """Why hosts cannot be booted, by host. Errors: HostError."""
        reasons: dict[str, str] = {}
        host_of: dict[str, str] = {}  # by boot id
        for host in self._hosts:
            if host.host.local:
                reasons[host.name] = (
                    "this is the machine that netbench runs on, which cannot boot itself; name"
                    " hosts with ssh, or lab: qemu"
                )
                continue
            boot_id = host.machine.state().boot_id
            mate = host_of.setdefault(boot_id, host.name)
            if boot_id == own_boot_id():
                reasons[host.name] = (
                    "it shares the kernel of the machine that netbench runs on; lab: qemu has hosts"
                    " with their own"
                )
            elif mate != host.name:
                reasons[host.name] = (
                    f"it shares a kernel with {mate}; name hosts with kernels of their own"
                )
            elif why := host.method.why_not(host.machine, self._builds):
                reasons[host.name] = why
        return reasons

    def bring_up(self, kernel: str, accept: Callable[[int], str], build: int | None = None) -> int:
        """Boot every host on a kernel ("": its original one) and, where it has several builds, on
        that build, which counts from 1; the boot's number.

        `accept` is asked about the boot with that number once all hosts are there, and says what is
        wrong, or "". Errors: BootError when that did not work; hosts that were booted are then back
        on their original kernels. HostError when that did not work either.
        """
        for host in self._hosts:
            host.remember()
        chosen = self._kernels[kernel].each[(build or 1) - 1] if kernel in self._kernels else None
        targets = self._prepare(chosen)
        self.number += 1
        why = self._boot_all(targets, chosen)
        if not why and (rejected := self._ask(accept)):
            why = self._boot_again(chosen, accept, rejected)
        if why:
            self.give_up(kernel, why)
            raise BootError(why)
        return self.number

    def wait_until_ready(self, step: Boot, stored: Hosts) -> tuple[dict[str, HostEntry], str]:
        """What was read of hosts that were booted, and what is wrong with them, or "". `stored`:
        the entries of facts.json of all boots so far. Errors: EngineError; Lost.
        """
        return wait_until_ready(self._campaign, self._pool, stored, step)

    def _boot_again(self, kernel: Kernel | None, accept: Callable[[int], str], why: str) -> str:
        """Boot all hosts once more, since they were not accepted. What is wrong then, or ""."""
        self._say(f"boot {self.number}, once more: {why}")
        try:
            return self._boot_all(self._prepare(kernel), kernel) or self._ask(accept)
        except BootError as error:
            return f"{why}; it could not be booted once more: {error}"

    def why_gone(self, error: Lost) -> str:
        """Why hosts are lost on the kernel that they were booted on, with their consoles' ends."""
        return "".join([str(error), *(host.last_words() for host in self._hosts)])

    def give_up(self, kernel: str, why: str) -> None:
        """Every host back, after a boot that did not work, or a kernel that died. Errors: HostError
        when a host is not back.
        """
        kernel = kernel or "original kernel"
        self._say(f"kernel {kernel}, going back: {why.partition(chr(10))[0]}")
        try:
            self.back()
        except HostError as error:
            raise HostError(joined((str(error), f"before, on kernel {kernel}: {why}"))) from error

    def _ask(self, accept: Callable[[int], str]) -> str:
        try:
            return accept(self.number)
        except HostBusy:
            raise
        except (Lost, TimeoutError, EngineError) as error:
            return str(error)

    def _prepare(self, kernel: Kernel | None) -> dict[str, Target]:
        """What each host is to boot. Errors: BootError with what is wrong on any of them; nothing
        has happened yet.
        """
        targets: dict[str, Target] = {}

        def prepare(host: BootingHost) -> None:
            targets[host.name] = host.prepare(kernel)

        try:
            errors = self._together(prepare, self._hosts)
        except BaseException:
            self._together(BootingHost.cancel, self._hosts)
            raise
        if errors:
            self._together(BootingHost.cancel, self._hosts)
            raise BootError(joined(errors.values()))
        return targets

    def _boot_all(self, targets: dict[str, Target], kernel: Kernel | None) -> str:
        """Boot all hosts, those that fail once more. What is wrong with those that failed again."""

        def boot(host: BootingHost) -> None:
            host.boot(targets[host.name], self.number)

        def boot_again(host: BootingHost) -> None:
            host.boot(host.prepare(kernel), self.number)

        if busy := self._together(self._take, self._hosts):
            self._together(BootingHost.cancel, self._hosts)
            raise HostBusy(joined(busy.values()))
        errors = self._together(boot, self._hosts)
        again = [host for host in self._hosts if host.name in errors and host.can_boot]
        if again:
            reasons = joined(errors[host.name] for host in again)
            self._say(f"boot {self.number}, once more: {reasons}")
            for host in again:
                del errors[host.name]
            errors |= self._together(boot_again, again)
        return joined(errors.values())

    def finish_boots(self) -> list[str]:
        """After a controller died: wait for hosts that it was booting. Those that do not answer in
        time are booted back. What was done to these. Errors: BootError, HostError.
        """
        lines: list[str] = []

        def wait(host: BootingHost) -> None:
            if line := host.wait_after_crash():
                lines.append(line)

        errors = self._together(wait, [host for host in self._touched() if host.is_under_way])
        if errors:
            raise BootError(joined([*lines, *errors.values()]))
        return lines

    def back(self) -> list[str]:
        """Hosts that were booted, back on their kernels; what was done. Errors: HostError."""
        self._interrupted.clear()
        lines: dict[str, str] = {}

        def boot_back(host: BootingHost) -> None:
            self._take(host)
            lines[host.name] = host.boot_back()

        errors = self._together(boot_back, self._touched())
        done = [lines[host.name] for host in self._hosts if lines.get(host.name)]
        if errors:
            raise HostError(joined([*done, *errors.values()]))
        return done

    def _take(self, host: BootingHost) -> None:
        """Lock a host, by a new worker where the one there is lost. Errors: HostBusy."""
        try:
            with suppress(WorkerLost):
                return self._lock(host.name)
            self._pool.release(host.name, wait=False)
            self._lock(host.name)
        except HostBusy:
            raise
        except Lost:  # nobody is known to use it
            pass

    def _touched(self) -> list[BootingHost]:
        return [host for host in self._hosts if host.original]

    def _together(
        self, act: Callable[[BootingHost], None], hosts: Iterable[BootingHost]
    ) -> dict[str, str]:
        """Do something for hosts at the same time; what went wrong, by host. Ctrl-C ends it."""
        errors: dict[str, str] = {}

        def guarded(host: BootingHost) -> None:
            try:
                act(host)
            except (BootError, Lost, TimeoutError) as error:
                text = str(error)
                errors[host.name] = text if text.startswith(host.name) else f"{host.name}: {text}"
            except BaseException:
                self._interrupted.set()
                raise

        acts = [partial(guarded, host) for host in hosts]
        side_by_side(acts, self._interrupted.set, AT_ONCE)
        return errors


def joined(reasons: Iterable[str]) -> str:
    """Reasons in one line, with what belongs to them in the lines after it."""
    parts = [reason.partition("\n") for reason in reasons]
    return "\n".join(
        ["; ".join(head for head, _, _ in parts), *(rest for _, _, rest in parts if rest)]
    )


def original_states(journal: Journal) -> dict[str, State]:
    """What hosts ran before they were booted, of those that are not back on it, by host."""
    return {
        host: State(kernel.boot_id, kernel.release, kernel.command_line)
        for host, kernel in journal.original_kernels().items()
    }
