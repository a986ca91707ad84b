"""The workers of a campaign: on each host a mover for each role that it has, and, where the
campaign changes hosts, a helper. They are started when first needed, alive until the end.
"""

from __future__ import annotations

import os.path
import resource
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from netbench.base.cancel import side_by_side
from netbench.base.errors import EngineError, HostError, HostGone, Lost, NetbenchError, RootRefused
from netbench.engine.heartbeat import Heartbeat
from netbench.engine.worker import Worker
from netbench.hosts.host_channel import Channel
from netbench.hosts.local import LocalChannel
from netbench.model import Campaign, Host, Pair
from netbench.run.own_settings import NO_ROOT, own_settings

ChannelFactory = Callable[[Host], Channel]
RECONNECT_SECONDS = 60.0  # a host that was lost may be back within
RECONNECT_PAUSE = 0.5
ATTEMPTS = 3  # at what loses a worker each time
INTERRUPT_SECONDS = 2.0  # after Ctrl-C, for threads that wait for a worker
HELPER = "helper"  # in place of a role
AT_ONCE = 32  # hosts that are contacted in parallel
FILES = 1 << 16  # open at most: 8 a worker, and those of the controller


def open_channel(host: Host) -> Channel:
    """The way to a host. Errors: HostError."""
    if host.ssh is None:
        return LocalChannel(host.name)
    from netbench.hosts.ssh.channel import SshChannel

    return SshChannel(
        host.name,
        host.ssh,
        # one of an account that is not here is missed by ssh, by its name
        ssh_config=Path(os.path.expanduser(host.ssh_config)) if host.ssh_config else None,
    )


def allow_files() -> None:
    """Raise this process's limit of open files, of which a shell allows 1,024 as a rule, as far as
    the hard limit lets it, for fleets.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class WorkerPool:
    """Workers by host and role (`sender`, `receiver`; `helper`), stopped by the context."""

    def __init__(self, campaign: Campaign, channels: ChannelFactory = open_channel) -> None:
        self._campaign = campaign
        self._hosts = campaign.hosts
        self._roles = campaign.roles
        self._open = channels
        self._channels: dict[str, Channel] = {}
        self._workers: dict[tuple[str, str], Worker] = {}
        senders = [(pair.sender, "sender") for pair in campaign.pairs]
        receivers = [(pair.receiver, "receiver") for pair in campaign.pairs]
        self.needing = {host for host in self._roles if campaign.needs_root(host)}
        wants = [host for host in self._roles if campaign.needs_root(host) or campaign.profile]
        helpers = [(host, HELPER) for host in wants]
        self._wanted = list(dict.fromkeys(senders + receivers + helpers))
        allow_files()
        self._with_helper = set(wants)
        self.no_root: dict[str, str] = {}  # hosts without a helper that would be of use, with why
        self._lost: set[str] = set()
        self._gone: set[str] = set()  # hosts that were lost and did not come back in time
        self._patient_since: float | None = None  # when a host was lost, and none has been back
        self._left: dict[tuple[str, str], int] = {}  # pids of lost workers
        self._boot_ids: dict[str, str] = {}
        self._interrupt: KeyboardInterrupt | None = None
        self.refused: dict[str, RootRefused] = {}  # hosts that give no root, which they have to
        self._rootless: dict[str, RootRefused] = {}  # hosts that give none, with why
        self.lent: dict[str, list[str]] = {}  # by host, meters whose files a helper has opened
        self._heartbeat = Heartbeat()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def worker(self, host: str, role: str) -> Worker:
        """The worker of that host and role. Errors: Lost."""
        key = host, role
        if key not in self._workers:
            was_lost = host in self._lost or key in self._left
            worker = self._restart(host, role) if was_lost else self._start(host, role)
            self._refuse_another_boot(host, worker)
            if key in self._left:
                worker.end_stopped(self._left.pop(key))
            self._workers[key] = worker
            if self._interrupt:  # which came while it was started
                worker.interrupt(self._interrupt)
            self._heartbeat.add(worker)
            if role != HELPER:
                self.lent[host] = self._lend_files(worker)
        return self._workers[key]

    def host_worker(self, host: str) -> Worker:
        """The mover that is asked about a host. Errors: as worker."""
        return self.worker(host, self._roles[host])

    def holder(self, host: str) -> Worker:
        """The worker that holds a host's lock and settings: its helper, or, where there is none
        and need be none, the one that is asked about it. Errors: as worker.
        """
        return self.worker(host, self._holding_role(host))

    def helper(self, host: str) -> Worker:
        """The worker that changes a host. Errors: as worker."""
        return self.worker(host, HELPER)

    def pair_workers(self, pair: Pair) -> tuple[Worker, Worker]:
        """The sender's and the receiver's worker. Errors: as worker."""
        return self.worker(pair.sender, "sender"), self.worker(pair.receiver, "receiver")

    def is_local(self, host: str) -> bool:
        """Whether a host is the machine that the controller runs on."""
        return self._hosts[host].ssh is None

    def channel(self, host: str) -> Channel:
        """The way to a host, opened where there is none."""
        if host not in self._channels:
            self._channels[host] = self._open(self._hosts[host])
        return self._channels[host]

    def _start(self, host: str, role: str) -> Worker:
        if self._interrupt:
            raise self._interrupt
        channel = self.channel(host)
        if role != HELPER:
            return Worker(channel.start_mover(self._hosts[host].run_as), host)
        if host in self._rootless:
            raise self._rootless[host]
        try:
            return Worker(channel.start_helper(), host)
        except RootRefused as error:
            self._rootless[host] = error
            raise

    def _lend_files(self, mover: Worker) -> list[str]:
        """Pass what meters need root to open from the helper to a mover that may not. Its catalogue
        says from then on what can be read, and why not. Returns the meters that can. Errors: Lost.
        """
        known = mover.catalogue.meters
        lacking = [name for name in self._campaign.meters if name in known and known[name].row.why]
        lent = []
        for name in (name for name in lacking if known[name].has("by_helper")):
            why = known[name].row.why
            try:
                helper = self.helper(mover.host)
                unread = helper.catalogue.meters[name].unread
                if name not in unread:  # else root lacks it too
                    socket = (mover.operate("meter_socket", name, "open")[1] or "").strip()
                    helper.operate("meter_files", (name, socket, str(mover.hello.user)), "passed")
                    mover.operate("meter_socket", name, "taken")
                    lent.append(name)
            except RootRefused:
                unread = {name: f"{why}, and `sudo -n` gives none"}
            except EngineError as error:
                unread = {name: f"{why}, and {error.message}"}
            mover.catalogue = mover.catalogue.explaining(name, unread)
        return lent

    def _restart(self, host: str, role: str) -> Worker:
        """A worker on a host that was lost, which may take a while to come back. Hosts that are
        lost one after another, with nothing done between, are waited for once: a switch or a rack
        takes all of them along. Errors: HostGone.
        """
        self._patient_since = since = self._patient_since or time.monotonic()
        seconds = 0.0 if host in self._gone else RECONNECT_SECONDS
        while True:
            try:
                worker = self._start(host, role)
            except Lost as error:
                if time.monotonic() > since + seconds:
                    self._gone.add(host)
                    within = f"within {RECONNECT_SECONDS:.0f} s"
                    raise HostGone(f"{error}; no lost host was back {within}") from error
                self.disconnect(host)
                time.sleep(RECONNECT_PAUSE)
            else:
                self._lost.discard(host)
                self._gone.discard(host)
                self.reached()
                return worker

    def reached(self) -> None:
        """Hosts answer: one that is lost from now on is waited for anew."""
        self._patient_since = None

    def _refuse_another_boot(self, host: str, worker: Worker) -> None:
        """What was set and read of a host holds for one boot: after a reboot of its own it is
        another host. Errors: HostGone.
        """
        now = worker.hello.boot_id
        before = self._boot_ids.setdefault(host, now)
        if before != now:
            worker.abandon()
            see = "" if self._campaign.lab else "; see why (its console, `last -x`)"
            what = f"it was rebooted, not by this campaign (boot {before}, now {now})"
            raise HostGone(f"{host}: {what}{see}")

    def start_all(self, changes: bool = True) -> None:
        """Start every worker, all hosts at the same time; hosts that give no root are `refused`.
        Without `changes` to come, no helper is started that only the campaign's own settings are
        for. Errors: HostError with what is wrong with each host that failed.
        """
        errors: dict[str, NetbenchError] = {}

        def start(host: str) -> None:
            try:
                for name, role in self._wanted:
                    if name == host:
                        self.worker(name, role)
                if changes:
                    self._start_useful_helper(host)
            except RootRefused as error:
                self.refused[host] = error
            except (Lost, EngineError) as error:
                errors[host] = error

        self.each(start)
        if errors:
            failed = (str(errors[host]) for host in self._roles if host in errors)
            raise HostError("\n".join(dict.fromkeys(failed)))

    def _start_useful_helper(self, host: str) -> None:
        """A helper that nothing needs, for the campaign's own settings: where there is one already,
        or the login is root. The campaign goes on without it.
        """
        if host in self._with_helper or not own_settings(self._campaign, host):
            return
        is_root = self.host_worker(host).hello.user == 0 or self._hosts[host].run_as
        if not is_root and (host, HELPER) not in self._workers:
            self.no_root[host] = NO_ROOT
            return
        try:
            self.helper(host)
        except (Lost, EngineError) as error:
            self.no_root[host] = str(error).partition("\n")[0]
        else:
            self._with_helper.add(host)

    def has_helper(self, host: str) -> bool:
        """Whether a helper is kept on a host."""
        return host in self._with_helper and host not in self.refused

    def kernels(self) -> list[list[str]]:
        """The hosts of each kernel; the first of them speaks for it, a local one if any."""
        by_boot: dict[str, list[str]] = {}
        for host in sorted(self._roles, key=lambda host: not self.is_local(host)):
            kernel = self._boot_ids.get(host) or self.host_worker(host).hello.boot_id
            by_boot.setdefault(kernel, []).append(host)
        return list(by_boot.values())

    def each(self, act: Callable[[str], None], hosts: Iterable[str] | None = None) -> None:
        """Do something for every host that takes part, or these, many at the same time; the first
        error is raised when all are done. After Ctrl-C those that wait for a worker give up, and
        what goes on nevertheless is left to itself after INTERRUPT_SECONDS.
        """
        acts = [partial(act, host) for host in (self._roles if hosts is None else hosts)]
        side_by_side(acts, self.interrupt, AT_ONCE, INTERRUPT_SECONDS)

    def dismiss(self, host: str, role: str) -> None:
        """Abandon a lost worker; the next call of `worker` starts another, once it is back."""
        self._lost.add(host)
        worker = self._workers.pop((host, role), None)
        if worker is not None:
            self._left[host, role] = worker.hello.pid
            self._heartbeat.remove(worker)
            worker.abandon()

    def dismiss_pair(self, pair: Pair) -> None:
        """Dismiss all workers of a pair: after one was lost the others may hold half a run, or
        settings that were undone meanwhile.
        """
        for host, role in ((pair.sender, "sender"), (pair.receiver, "receiver")):
            self.dismiss(host, role)
            self.dismiss(host, HELPER)

    def dismiss_lost(self, pair: Pair) -> None:
        """Dismiss all workers of a pair if one of them is known to be lost."""
        hosts = pair.sender, pair.receiver
        if any(worker.lost for (host, _), worker in self.workers().items() if host in hosts):
            self.dismiss_pair(pair)

    def release(self, host: str, wait: bool = True) -> None:
        """Stop a host's workers before it is booted; without `wait`, give them up: it goes down."""
        for key in [key for key in list(self._workers) if key[0] == host]:
            if wait:
                worker = self._workers.pop(key)
                self._heartbeat.remove(worker)
                worker.close()
            else:
                self.dismiss(*key)
        self._left = {key: pid for key, pid in self._left.items() if key[0] != host}
        self._boot_ids.pop(host, None)
        self._rootless.pop(host, None)
        self._lost.discard(host)
        self._gone.discard(host)

    def disconnect(self, host: str) -> None:
        """Close the channel to a host; the next call opens another."""
        channel = self._channels.pop(host, None)
        if channel is not None:
            channel.close()

    def boot_id(self, host: str) -> str:
        """What tells a host's kernel from all others: hosts with equal ids share one."""
        return self._boot_ids[host]

    def boot_ids(self) -> Mapping[str, str]:
        """Those of all hosts that have had a worker since they were booted."""
        return dict(self._boot_ids)

    def interrupt(self, reason: KeyboardInterrupt | None = None) -> None:
        """Make whoever waits for a worker raise this (left out: as by Ctrl-C) in its thread."""
        self._interrupt = reason or KeyboardInterrupt()
        for worker in list(self._workers.values()):
            worker.interrupt(self._interrupt)

    def clear_interrupt(self) -> None:
        """After `interrupt`: workers can be waited for again, to put back what they hold."""
        self._interrupt = None
        for worker in list(self._workers.values()):
            worker.clear_interrupt()

    def is_current(self, host: str, worker: object) -> bool:
        """Whether this is the host's present worker, as `holder` gives it."""
        return self._workers.get((host, self._holding_role(host))) is worker

    def dismiss_holder(self, host: str) -> None:
        """Dismiss the worker that holds a host's settings."""
        self.dismiss(host, self._holding_role(host))

    def _holding_role(self, host: str) -> str:
        return HELPER if host in self.needing or self.has_helper(host) else self._roles[host]

    def workers(self) -> Mapping[tuple[str, str], Worker]:
        """Those that are there."""
        return dict(self._workers)

    def close(self) -> None:
        """Stop all workers at the same time, and close the channels."""
        self._heartbeat.stop()
        closing = [worker.close for worker in self._workers.values()]
        side_by_side(closing, lambda: None, AT_ONCE)
        self._workers.clear()
        for channel in list(self._channels.values()):
            channel.close()
