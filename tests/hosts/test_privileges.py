"""Who may do what on a host. Real sshd, real accounts, real sudo."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from netbench import campaign
from netbench.base.errors import EngineError
from netbench.engine import binding, frames
from netbench.engine.binding import Frame, describe
from netbench.engine.heartbeat import Heartbeat
from netbench.engine.worker import Worker
from netbench.hosts import deploy
from netbench.hosts.host_channel import Process
from netbench.hosts.local import LocalChannel
from netbench.model import Campaign
from netbench.result import campaign_state
from netbench.result.files import CAMPAIGN_FILES
from netbench.result.journal import Change, Journal
from netbench.result.profile_files import read_profile_runs
from netbench.run import conductor
from netbench.run.check import check
from netbench.run.runner import Runner
from netbench.run.worker_pool import WorkerPool
from netbench.settings.named import known
from netbench.settings.put_back import There, put_back
from tests.support.local import call, out
from tests.support.running import stored_records, wait_for
from tests.support.sshd import (
    UID,
    Bed,
    Server,
    bed,
    needs_sshd,
    open_bed,
    open_folder,
    started,
    sudo_setup,
    tmp_path,
)

__all__ = ["bed", "tmp_path"]
pytestmark = [pytest.mark.root, pytest.mark.netns, needs_sshd]

BUILT = deploy.PACKAGE / f"worker-{platform.machine()}"
INSTALLED = f"{deploy.PLACE}/worker-{hashlib.sha256(BUILT.read_bytes()).hexdigest()}"
TTL = Path("/proc/sys/net/ipv4/ip_default_ttl")
NO_SAVE = Path("/proc/sys/net/ipv4/tcp_no_metrics_save")
LINK = "nbpriv0"
OTHER = "nbpriv1"
CAP_SYS_RESOURCE = 24
Reached = contextlib.AbstractContextManager[tuple[Server, Worker]]
# a /var/log of the host's own, and the /sys of its network namespace
OWN = "mount -t sysfs sysfs /sys; mkdir -m 755 $HOME/../logs; mount --bind $HOME/../logs /var/log\n"


@pytest.fixture(scope="module", autouse=True)
def links() -> Iterator[None]:
    """A pair of interfaces in the network namespace of the tests' process."""
    add_links()
    yield
    delete_links()


@pytest.fixture(autouse=True)
def fresh_links(request: pytest.FixtureRequest) -> Iterator[None]:
    """As they are made: a test changes them, but for those whose helper is others' too."""
    yield
    if "shared" not in request.fixturenames:
        delete_links()
        add_links()


def add_links() -> None:
    subprocess.run(["ip", "link", "add", LINK, "type", "veth", "peer", "name", OTHER], check=True)


def delete_links() -> None:
    subprocess.run(["ip", "link", "delete", LINK], check=True)


def sudo_rule(bed: Bed, words: str = " helper") -> str:
    """Setup text: a host whose sudo lets `bench` run the worker with these words."""
    rule = f"bench ALL=(root) NOPASSWD: {deploy.PLACE}/worker-*{words}"
    return OWN + sudo_setup(bed, rule, BUILT)


def allow_file(text: str) -> str:
    """Setup text: a host with this file."""
    lines = " ".join(f"'{line}'" for line in text.splitlines())
    return f"mkdir -p -m 755 /etc/netbench; printf '%s\\n' {lines} > /etc/netbench/allow\n"


@contextlib.contextmanager
def helper_on(bed: Bed, **host: str) -> Iterator[tuple[Server, Worker]]:
    server, channel = bed.host(**host)
    with talking(channel.start_helper()) as worker:
        yield server, worker


def helper_by_sudo(bed: Bed, setup: str = "") -> Reached:
    return helper_on(bed, user="bench", setup=sudo_rule(bed) + setup)


def helper_of_root(bed: Bed, setup: str = "") -> Reached:
    return helper_on(bed, setup=OWN + setup)


def talking(process: Process) -> contextlib.closing[Worker]:
    return contextlib.closing(Worker(process, "snd"))


Login = Callable[[Bed, str], Reached]
Shared = Callable[[Login, str], tuple[Server, Worker]]


@pytest.fixture(scope="module")
def shared() -> Iterator[Shared]:
    """One helper for each login and setup, for tests that leave it as they found it."""
    made: dict[tuple[Login, str], tuple[Server, Worker]] = {}
    heartbeat = Heartbeat()

    with contextlib.ExitStack() as stack:
        stack.callback(heartbeat.stop)

        def share(login: Login, setup: str) -> tuple[Server, Worker]:
            if (login, setup) not in made:
                bed = stack.enter_context(open_bed(stack.enter_context(open_folder())))
                made[login, setup] = stack.enter_context(login(bed, setup))
                heartbeat.add(made[login, setup][1])
            return made[login, setup]

        yield share


Asked = Mapping[str, object]


def refusal(worker: Worker, **asked: object) -> str:
    with pytest.raises(EngineError) as error:
        worker.operate(**asked)  # type: ignore[arg-type]
    return str(error.value)


def mtu(interface: str = LINK) -> str:
    return str(json.loads(out("ip", "-j", "link", "show", interface))[0]["mtu"])


# --- by sudo, without a file ----------------------------------------------------------------------

OF_LINK = f"/sys/class/net/{LINK}/subsystem"
WAYS_TO_ROOT: Mapping[str, Asked] = {
    "a program": {"op": "exec", "target": ["/usr/bin/id"]},
    "a program as undo": {"op": "exec", "target": ["true"], "undo": ["sh", "-c", "id"]},
    "a kernel": {"op": "boot", "target": ["kexec", "-l", "/tmp/image"]},
    "a file": {"op": "file", "target": "/etc/netbench-was-here", "value": "x"},
    "a file by dots": {"op": "file", "target": "/proc/sys/net/../../../etc/was-here", "value": "x"},
    "a process": {"op": "file", "target": "/proc/1/oom_score_adj", "value": "1"},
    "memory": {"op": "file", "target": "/proc/self/mem", "value": "x"},
    "the core pattern": {"op": "file", "target": "/proc/sys/kernel/core_pattern", "value": "|/x"},
    "hotplug": {"op": "file", "target": "/sys/kernel/uevent_helper", "value": "/tmp/x"},
    "a file by a link": {"op": "file", "target": f"{OF_LINK}/{OTHER}/mtu", "value": "1400"},
    "an export": {
        "op": "export",
        "target": ["/", "::1", "::1", "/etc/shadow"],
        "value": "exported",
    },
    "a mount over keys": {"op": "mount", "target": "/root/.ssh", "value": "h:/\nvers=4.2"},
    "a secret": {"op": "file", "target": "/etc/shadow"},
    "a secret by dots": {"op": "file", "target": "/proc/sys/../../etc/shadow"},
    "another's memory map": {"op": "file", "target": "/proc/1/maps"},
    "a folder": {"op": "list", "target": "/root"},
    "a sysctl that only root reads": {"op": "file", "target": "/proc/sys/vm/mmap_rnd_bits"},
    "a file in a folder of root's": {"op": "file", "target": "/sys/kernel/debug/open"},
}


# debugfs: whoever gets into its folder may read its files
DEBUG = "mount -t tmpfs -o mode=700 tmpfs /sys/kernel/debug; touch /sys/kernel/debug/open\n"


def test_the_rule_of_sudo_is_no_way_to_root(shared: Shared) -> None:
    server, worker = shared(helper_by_sudo, DEBUG)
    for way, asked in WAYS_TO_ROOT.items():
        assert "a login by sudo needs /etc/netbench/allow" in refusal(worker, **asked), way
    server.run("! test -e /etc/netbench-was-here")


def test_sudo_starts_no_mover(bed: Bed) -> None:
    """Also where the rule allows any words: a mover runs any program."""
    _, channel = bed.host(user="bench", setup=sudo_rule(bed, ""))
    for words in (["mover"], ["mover", "nobody"]):
        with pytest.raises(EngineError, match="a mover is not started by sudo"):
            Worker(started(channel, ["sudo", "-n", "--", INSTALLED, *words]), "snd")


def compiled(bed: Bed, name: str, source: str, *options: str) -> Path:
    """A program that any account may run."""
    file = bed.folder / name
    subprocess.run(["cc", *options, "-x", "c", "-", "-o", file], input=source.encode(), check=True)
    return file


DOAS = "#include <unistd.h>\nint main(int n, char **words)\n{\n\treturn n < 2 || setgid(0) || setuid(0) || execv(words[1], words + 1);\n}\n"


def test_root_by_another_program_than_sudo_is_no_way_to_root_either(bed: Bed) -> None:
    """doas(1) and su(1) set no SUDO_UID: the socket of sshd tells whose it is."""
    server, channel = bed.host(user="bench", setup=OWN)
    channel.start_mover().finish(10)
    (program,) = (server.home / ".cache" / "netbench").iterdir()
    doas = compiled(bed, "doas", DOAS)
    doas.chmod(0o4755)
    with talking(started(channel, [str(doas), str(program), "helper"])) as worker:
        assert "Uid:\t0\t0\t0\t0" in Path(f"/proc/{worker.hello.pid}/status").read_text()
        for way in ("a program", "a sysctl that only root reads", "the core pattern"):
            assert "a login by sudo needs" in refusal(worker, **WAYS_TO_ROOT[way])
        worker.operate("link", (LINK, "mtu"), "1400", hold=True)
    with pytest.raises(EngineError, match="a mover is not started by sudo"):
        Worker(started(channel, [str(doas), str(program), "mover"]), "snd")


def asks_who_it_is() -> bytes:
    """What a controller sends that runs id(1) on a helper, without waiting for answers."""
    rows = {row.name: row.id for row in describe() if row.kind == "option" and row.owner == "file"}
    asked = frames.encode_values({rows["op"]: "exec", rows["target"]: "id"})
    return frames.frame(Frame.HELLO, 0, binding.own_hello()) + frames.frame(Frame.OP, 1, asked)


def answer(source: object, **environment: str) -> bytes:
    """What a helper, as root, answers to what it reads there."""
    argv = [str(BUILT), "helper"]
    given = {"input": source} if isinstance(source, bytes) else {"stdin": source}
    env = {"PATH": os.environ["PATH"], **environment}
    done = subprocess.run(argv, check=False, capture_output=True, env=env, timeout=60, **given)  # type: ignore[call-overload]
    return bytes(done.stdout)


def test_what_is_roots_and_holds_what_anyone_wrote_is_no_way_to_root(tmp_path: Path) -> None:
    """Of doas(1) and su(1) a user chooses the file that is read; Dropbear's pipes are root's."""
    given, fifo = asks_who_it_is(), tmp_path / "fifo"
    assert b"uid=0" in answer(given), "a pipe of root's is from root's controller"
    assert b"uid=0" in answer(given, DOAS_USER="root", PKEXEC_UID="0")
    (tmp_path / "file").write_bytes(given)
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    fifo.write_bytes(given)
    with (tmp_path / "file").open("rb") as file, open(reading, "rb") as pipe:
        said = [answer(file), answer(pipe)]
    for one in (*said, answer(given, DOAS_USER="bench"), answer(given, PKEXEC_UID="1000")):
        assert b"uid=0" not in one
        assert b"a login by sudo needs" in one


def test_named_settings_and_sysctls_of_the_network_are_allowed_by_sudo(bed: Bed) -> None:
    before = TTL.read_text()
    with helper_by_sudo(bed) as (_, worker):
        assert worker.operate("file", str(TTL), "40", hold=True) == (before, "40\n")
        worker.operate("link", (LINK, "mtu"), "1400", hold=True)
        features = worker.operate("features", LINK)[0]
        worker.operate("features", LINK, "rx-gro off\n", hold=True)
        assert mtu() == "1400"
        worker.operate("features", LINK, features)  # as it is put back from a journal
        worker.operate("list", f"/sys/class/net/{LINK}/queues")
        worker.operate("file", f"/sys/class/net/{LINK}/mtu")
    assert (TTL.read_text(), mtu()) == (before, "1500")


LOADED = """\
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void load(void) {{ if (!geteuid()) creat("{}", 0644); }}
"""


def helper_after(bed: Bed, setup: str, before: str) -> Worker:
    """A helper of sudo's, started by a user's shell after these commands."""
    _, channel = bed.host(user="bench", setup=sudo_rule(bed) + setup)
    start = ["sh", "-c", f"{before}; exec sudo -n -- {INSTALLED} helper"]
    return Worker(started(channel, start), "snd")


def test_the_limits_of_a_user_do_not_reach_the_helper(bed: Bed) -> None:
    capabilities = Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0]
    if not int(capabilities, 16) >> CAP_SYS_RESOURCE & 1:
        pytest.skip("needs root with CAP_SYS_RESOURCE, which lifts limits")
    worker = helper_after(bed, "", "ulimit -f 0; ulimit -t 1")
    limits = Path(f"/proc/{worker.hello.pid}/limits").read_text()
    assert "Max file size             unlimited" in limits
    assert "Max cpu time              unlimited" in limits
    worker.operate("link", (LINK, "mtu"), "1400", hold=True)
    worker.close()
    assert mtu() == "1500"


def test_the_environment_of_a_user_does_not_reach_the_helper(bed: Bed) -> None:
    """Also where sudo is told to keep the environment."""
    loaded = bed.folder / "loaded"
    library = compiled(bed, "library.so", LOADED.format(loaded), "-shared", "-fPIC")
    kept = "printf 'Defaults !env_reset\\n' >> /etc/sudoers\n" + allow_file("setting command")
    variables = f"LD_PRELOAD={library} LD_LIBRARY_PATH={bed.folder} PYTHONPATH={bed.folder} X=y"
    worker = helper_after(bed, kept, f"export {variables}")
    assert Path(f"/proc/{worker.hello.pid}/environ").read_bytes().strip(b"\0") == b""
    (path,) = worker.operate("exec", ["/usr/bin/env"])[0].splitlines()
    assert path.startswith("PATH=/usr/local/sbin:")
    assert not loaded.exists()
    worker.close()


# --- the file -------------------------------------------------------------------------------------

TSO, SG = "tx-tcp-segmentation off\n", "tx-scatter-gather off\n"
CPUS, NET = "/sys/devices/system/cpu", "/sys/class/net"
Rule = tuple[str, Asked, Asked, str]


def link(what: str = "mtu", interface: str = LINK) -> Asked:
    return {"op": "link", "target": (interface, what), "value": "1400"}


def features(value: str, interface: str = LINK) -> Asked:
    return {"op": "features", "target": interface, "value": value}


def file(path: str) -> Asked:
    return {"op": "file", "target": path, "value": "1"}


def moved(text: str) -> Asked:
    return {"op": "neighbours", "target": ("only", ""), "value": text}


def sysctl(path: str) -> Asked:
    return file(f"/proc/sys/net/{path}")


def meter(name: str) -> Asked:
    return {"op": "meter_files", "target": (name, "socket", str(UID)), "value": "passed"}


def irq(number: int) -> Asked:
    return file(f"/proc/irq/{number}/smp_affinity_list")


PROGRAM: Asked = {"op": "exec", "target": ["id"], "value": None}
BOOT: Asked = {"op": "boot", "target": ["reboot"], "value": None}
QDISC: Asked = {"op": "qdisc", "target": LINK, "value": "pfifo"}
RINGS: Asked = {"op": "rings", "target": OTHER, "value": "rx 1\n"}
OF_OTHER = f"`interface {OTHER}`"
BOUND = f"setting * feature.* sysfs.class/net/*/*\nsysctl net.\ninterface {LINK} no*"
# A setting, and what its line allows, as no line of another does.
OF_SETTINGS: Mapping[str, Asked] = {
    "mtu": link(),
    "qdisc": QDISC,
    "tso": features(TSO),
    "sg": features(SG),
    "gso_max_size": link("gso_ipv4_max_size"),
    "gro_max_size": link("gro_ipv4_max_size"),
    "rps": file(f"{NET}/{LINK}/queues/rx-0/rps_cpus"),
    "busy_poll": sysctl("core/busy_read"),
    "governor": file(f"{CPUS}/cpufreq/policy0/scaling_governor"),
    "turbo": file(f"{CPUS}/intel_pstate/no_turbo"),
    "tcp_metrics": {"op": "tcp_metrics", "target": "all", "value": "none"},
    "irq_affinity": irq(25),
    "command": PROGRAM,
    "nfs": {"op": "export", "target": ["/", "::1", "::1", "/x"], "value": "exported"},
    "perf": meter("perf"),
    "energy": meter("energy"),
    "profile": {"op": "profile", "target": "sampling", "value": "ready 997"},
}
# What a file allows, what it does not, and the line that would allow that.
RULES: Mapping[str, Rule] = {
    "a pattern in the second line": ("# all\n setting\trings # qdisc\nsetting rps m?u", link(),
                                     QDISC, "`setting qdisc`"),
    "both features": ("setting tso gro", features(TSO), features(TSO + SG), "`setting sg`"),
    "a feature": ("setting feature.tx-t*", features(TSO), features(SG), "`setting sg`"),
    "queues of channels": ("setting channels", file(f"{NET}/{LINK}/queues/tx-0/xps_cpus"),
                           file(f"{NET}/{LINK}/mtu"), f"`setting sysfs.class/net/{LINK}/mtu`"),
    "another turbo": ("setting turbo", file(f"{CPUS}/cpufreq/boost"),
                      file("/proc/irq/25/smp_affinity"), "`setting /proc/irq/25/smp_affinity`"),
    "boots": ("boot yes", BOOT, PROGRAM, "`setting command`"),
    "no boots": ("boot no\nsetting mtu", link(), BOOT, "`boot yes`"),
    "mounts": ("setting nfs", {**WAYS_TO_ROOT["a mount over keys"], "target": "/run/netbench.nfs-1"},
               file("/etc/shadow"), "`setting /etc/shadow`"),
    "sysctls": ("sysctl net.ipv4.ip_ vm.swap", file("/proc/sys/vm/swappiness"),
                sysctl("ipv4/tcp_sack"), "`sysctl net.ipv4.tcp_sack`"),
    "no dots": ("sysctl net.", sysctl("core/rmem_max"), sysctl("../kernel/core_pattern"),
                "`setting /proc/sys/net/../kernel/core_pattern`"),
    "a VLAN": ("sysctl net.ipv4.conf.a/1.", sysctl("ipv4/conf/a.1/forwarding"),
               sysctl("ipv4/conf/a/1.forwarding"), "`sysctl net.ipv4.conf.a.1/forwarding`"),
    "files of one folder": ("setting sysfs.kernel/mm/*", file("/sys/kernel/mm/x"),
                            file("/sys/kernel/mm/ksm/run"), "`setting sysfs.kernel/mm/ksm/run`"),
    "all of a folder but what is above": ("setting sysfs.*/*/*", file("/sys/kernel/mm/x"),
                                          file("/sys/../etc/x"), "`setting /sys/../etc/x`"),
    "an interface": (BOUND, link(), link(interface=OTHER), OF_OTHER),
    "its features": (BOUND, features(TSO), features(TSO, OTHER), OF_OTHER),
    "its rings": (BOUND, {**RINGS, "target": LINK}, RINGS, OF_OTHER),
    "its queues": (BOUND, file(f"{NET}/{LINK}/queues/rx-0/rps_cpus"),
                   file(f"{NET}/{OTHER}/queues/rx-0/rps_cpus"), OF_OTHER),
    "its files by another's link": (f"setting sysfs.class/net/*/*\ninterface {LINK}",
                                    file(f"{NET}/{LINK}/mtu"), file(f"{NET}/{LINK}/lower"), OF_OTHER),
    "its sysctls": (BOUND, sysctl(f"ipv4/conf/{LINK}/forwarding"),
                    sysctl(f"ipv6/neigh/{OTHER}/mcast_solicit"), OF_OTHER),
    "what moved along": (BOUND, moved(f"link:0 {LINK}\n mtu 1400\nqdisc:0 {OTHER}\n x y\n"),
                         moved(f"link:0 {LINK}\n mtu 1400\nlink:0 {OTHER}\n mtu 1400\n"),
                         OF_OTHER),
    "not all of them": (BOUND, sysctl("ipv4/ip_nonlocal_bind"), sysctl("ipv4/ip_forward"),
                        "`interface all`"),
    "its interrupts": (BOUND, irq(24), irq(25), "`interface that has /proc/irq/25/"),
    "those of its device": (BOUND.replace(LINK, OTHER), irq(25), irq(24), "`interface that has"),
}  # fmt: skip
# LINK is of virtio: interrupts are its PCI device's
DEVICES = (
    f"mount -t tmpfs tmpfs {NET}; mount -t tmpfs tmpfs /mnt; mkdir -p /mnt/1/msi_irqs"
    f" /mnt/2/msi_irqs /mnt/1/virtio7 {NET}/{LINK} {NET}/{OTHER}; touch /mnt/1/msi_irqs/24"
    f" /mnt/2/msi_irqs/25 {NET}/{OTHER}/mtu; ln -s /mnt/1/virtio7 {NET}/{LINK}/device; ln -s /mnt/2"
    f" {NET}/{OTHER}/device; ln -s ../{OTHER}/mtu {NET}/{LINK}/lower\n"
)


NO_LINE = "/etc/netbench/allow has no line that allows"


@pytest.mark.parametrize("login", [helper_by_sudo, helper_of_root])
def test_the_file_allows_what_it_lists_and_nothing_else(shared: Shared, login: Login) -> None:
    server, worker = shared(login, DEVICES)

    def permitted(asked: Asked) -> str:
        try:
            worker.ask_permission(**asked)  # type: ignore[arg-type]
        except EngineError as error:
            return str(error)
        return ""

    for case, (text, allowed, refused, said) in RULES.items():
        server.run(allow_file(text))
        assert permitted(allowed) == "", case
        assert f"{NO_LINE} {said}" in permitted(refused), case
    for setting in OF_SETTINGS:
        server.run(allow_file(f"setting {setting}"))
        for other, asked in OF_SETTINGS.items():
            said = permitted(asked)
            assert said == "" if other == setting else f"{NO_LINE} `setting {other}`" in said


SWAPPINESS = Path("/proc/sys/vm/swappiness")
RATES = Path("/proc/sys/net/ipv6/icmp/ratemask")
MANY = ",".join(map(str, range(1, 256, 2)))
OF_VM, OF_RATES = f"file {SWAPPINESS.parent}\n swappiness", f"file {RATES.parent}\n"


def tso() -> str:
    return out("ethtool", "-k", LINK).partition("tcp-segmentation-offload: ")[2].split()[0]


def swappiness() -> str:
    return SWAPPINESS.read_text().strip()


def by_root(*argv: str) -> Callable[[], object]:
    return lambda: subprocess.run(argv, check=True)


# An allow file, what is held and how, what root changes meanwhile, and how that reads.
Meanwhile = tuple[str, Asked, Callable[[], object], Callable[[], str], str]
ROOT_WRITES = by_root("sysctl", "-qw", "vm.swappiness=61")
SHORT = by_root("ip", "link", "set", OTHER, "mtu", "1400")
BOUND_TO_ONE = f"setting mtu gro\nsysctl net.ipv6.icmp.ratemask\ninterface {LINK}"
MEANWHILE: Mapping[str, Meanwhile] = {
    "too long to be read again": (
        "", {"target": ("only", f"{OF_VM}\n{OF_RATES * 2200}"), "value": ""}, ROOT_WRITES, swappiness, "61"),
    "another interface": (
        BOUND_TO_ONE, {"target": ("only", f"link:0 {OTHER}\n mtu 1\n{OF_RATES * 2200}")},
        SHORT, lambda: mtu(OTHER), "1400"),
    "features beside one that is": (
        BOUND_TO_ONE, {"op": "features", "target": LINK, "value": "rx-gro off\n"},
        by_root("ethtool", "-K", LINK, "tso", "off"), tso, "off"),
}  # fmt: skip


@pytest.mark.parametrize("case", MEANWHILE)
def test_what_may_not_be_changed_is_not_put_back_either(shared: Shared, case: str) -> None:
    """What is held is written again, and may be root's by then."""
    text, held, change, read, now = MEANWHILE[case]
    before, rates = swappiness(), RATES.read_text().strip()
    server, worker = shared(helper_by_sudo, "true\n")
    server.run("rm -rf /etc/netbench; " + (allow_file(text) if text else ""))
    try:
        with contextlib.suppress(EngineError):  # or not even held
            worker.operate(**{"op": "neighbours", "hold": True, **held})  # type: ignore[arg-type]
        worker.operate("file", str(RATES), MANY)
        change()
        worker.operate("file", str(RATES), rates, hold=True, scope=1)
        with contextlib.suppress(EngineError):  # it reads otherwise than it was
            worker.undo(0)
        assert read() == now
    finally:
        SWAPPINESS.write_text(before)
        RATES.write_text(rates)
        delete_links()
        add_links()


def gro(worker: Worker) -> list[str]:
    return worker.operate("features", LINK)[0].partition("\nrx-gro: ")[2].split()[:1]


def test_what_the_file_lists_is_done_and_put_back_and_what_it_does_not_is_not(bed: Bed) -> None:
    """Beside what may not, which root has changed. And by the journal."""
    only = f"link:0 {LINK}\n mtu\nlink:0 {OTHER}\n mtu\n"
    text = BOUND_TO_ONE.replace("gro", "gro command") + "\nsysctl vm."
    with helper_by_sudo(bed, allow_file(text)) as (_, worker):
        assert worker.operate("exec", ["echo", "said"], undo=["true"])[0] == "said\n"
        worker.operate("file", "/proc/sys/vm/mmap_rnd_bits")  # what one may change one may read
        assert OF_OTHER in refusal(worker, **link(interface=OTHER))
        assert "`setting tso`" in refusal(worker, **features(TSO))
        (before,) = gro(worker)
        whole, other = worker.operate("features", LINK)[0], {"on": "off", "off": "on"}[before]
        worker.operate("features", LINK, f"rx-gro {other}\n")
        change = Change(1, "snd", "boot", "gro", "features", (LINK,), None, whole)
        assert list(put_back({"snd": There(worker, "boot")}, [change], lambda entry: None))
        assert worker.operate("features", LINK)[0] == whole
        worker.operate("neighbours", ("only", only), hold=True)
        worker.operate("link", (LINK, "mtu"), "1400", hold=True)
        worker.operate("features", LINK, f"rx-gro {other}\n", hold=True)
        assert (mtu(), gro(worker)) == ("1400", [other])
        SHORT()
        by_root("ethtool", "-K", LINK, "tso", "off")()
        with pytest.raises(EngineError, match="another program has changed it since"):
            worker.undo(0)
        assert (mtu(), mtu(OTHER), tso(), gro(worker)) == ("1500", "1400", "off", [before])


def test_what_is_held_around_a_change_belongs_to_what_may_be_changed(shared: Shared) -> None:
    """It is written back as far as the change has moved it."""
    queue, own = "/proc/sys/fs/mqueue", "/proc/sys/net/ipv4"
    server, worker = shared(helper_by_sudo, "true\n")
    server.run(allow_file(f"setting mtu\nsysctl net.\ninterface {LINK}"))
    for target in (("file", f"{queue}/msg_max"), ("link", OTHER)):
        with pytest.raises(EngineError, match="has no line that allows"):
            worker.operate("neighbours", target, hold=True)
        worker.operate("neighbours", target)  # what all may read
    for target in (("file", f"{own}/tcp_sack"), ("link", LINK)):
        worker.operate("neighbours", target, hold=True)
    with pytest.raises(EngineError, match="is held beside a change, not written"):
        worker.operate("neighbours", ("only", ""), "", hold=True)
    worker.undo()


ROOTS = "and its folder must be root's and writable by no other"
BAD_FILES = {
    "another's file": ("chown bench /etc/netbench/allow", ROOTS),
    "another's folder": ("chown bench /etc/netbench", ROOTS),
    "open to a group": ("chmod g+w /etc/netbench/allow", ROOTS),
    "an open folder": ("chmod 777 /etc/netbench", ROOTS),
    "a link": ("mv /etc/netbench/allow /etc/allow; ln -s /etc/allow /etc/netbench/allow", ROOTS),
    "a folder": ("rm /etc/netbench/allow; mkdir /etc/netbench/allow", ROOTS),
    "a long file": ("yes '#' | head -c 8192 >> /etc/netbench/allow", "(of less than 8 KiB)"),
    "an unknown word": ("echo settings mtu >> /etc/netbench/allow", "/etc/netbench/allow:2 "),
    "a word alone": ("echo setting >> /etc/netbench/allow", "/etc/netbench/allow:2 "),
}


def test_a_file_that_others_may_have_written_allows_nothing(shared: Shared) -> None:
    """The helper reads it anew for each operation."""
    server, worker = shared(helper_by_sudo, "true\n")
    for fault, (make, said) in BAD_FILES.items():
        server.run(f"rm -rf /etc/netbench /etc/allow; {allow_file('setting mtu')}{make}")
        message = refusal(worker, **link())
        assert said in message, fault
        assert "nothing is allowed" in message, fault
    assert mtu() == "1500"


def test_every_named_setting_is_one_of_the_default_but_nfs() -> None:
    """The names in native/src/ops/permit.c are those of settings, and of meters it opens."""
    from netbench.settings.ethtool import FEATURES

    text = (Path(__file__).parents[2] / "native/src/ops/permit.c").read_text()
    default = text.partition("OF_SUDO[] =")[2].partition(";")[0].replace('"', " ")
    words = set(default.replace("\\n", " ").split())
    named = {name for name in known() if not name.endswith(".")} - {one.name for one in FEATURES}
    others = {"feature.*", "net.", "perf", "energy"}
    assert named - {"nfs"} | others == words - {"setting", "sysctl"}
    for setting in FEATURES:
        if setting.pattern:
            assert f'{{ "{setting.name}", "feature.{setting.pattern}" }}' in text


# --- meters that need root ------------------------------------------------------------------------

PARANOID = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
needs_paranoia = pytest.mark.skipif(
    PARANOID < 1, reason="kernel.perf_event_paranoid lets every user count all CPUs"
)


@needs_paranoia
def test_a_helper_opens_events_and_energy_counters_for_a_mover_without_root(
    bed: Bed, tmp_path: Path
) -> None:
    """RAPL is simulated: a folder in the place of powercap's."""
    server = reached(bed, setup=sudo_rule(bed) + RAPL)
    wanted = parsed(bed, METERED.replace("perf", "perf, energy"))
    with WorkerPool(parsed(bed, METERED.replace("perf", "softirq"))) as pool:
        pool.start_all()
        assert {role for _, role in pool.workers()} == {"sender", "receiver"}, "for no other meter"
    conclusion = conductor.start(wanted, tmp_path / "results")
    (record,) = stored_records(conclusion.path)
    assert record["status"] == "ok"
    opening, closing = record["sender"]["perf"]["context_switches"]
    assert closing > opening
    assert record["sender"]["energy"]["package_uj"] == [0, 0]
    assert "dram_uj" not in record["sender"]["energy"]
    unread = facts_of(conclusion.path)["unread"]
    assert not [name for name in unread if name in ("perf", "perf.context_switches")]
    log = (server.folder / "logs" / "netbench.log").read_text()
    assert "user='bench' set meter_files 'perf " in log


@needs_paranoia
def test_without_a_helper_a_meter_and_a_profile_are_empty_with_their_reasons(
    bed: Bed, tmp_path: Path
) -> None:
    reached(bed, setup=sudo_rule(bed, " no-helper"))
    wanted = parsed(bed, METERED + PROFILED)
    lines = findings(wanted)
    assert f"warning: snd: meters: perf: {WITHOUT}; its columns stay empty" in lines
    assert [one for one in lines if one.startswith("warning") and "profile" in one]
    assert "error: " not in "".join(lines)
    conclusion = conductor.start(wanted, tmp_path / "results")
    assert (conclusion.why, conclusion.failed) == ("done", False)
    (record,) = stored_records(conclusion.path)
    assert {"perf", "rusage"} & set(record["sender"]) == {"rusage"}
    assert facts_of(conclusion.path)["unread"] == {"perf": WITHOUT}
    (profile,) = read_profile_runs(conclusion.path)
    assert profile.status == "unsupported"
    assert "`sudo -n` does not start the helper" in profile.reason


RAPL = (
    "mount -t tmpfs tmpfs /sys/class; at=/sys/class/powercap/intel-rapl:0; mkdir -p $at; echo"
    " package-0 > $at/name; echo 1000 > $at/max_energy_range_uj; echo 7 > $at/energy_uj; chmod 400"
    " $at/energy_uj\n"
)


def test_descriptors_go_to_the_user_who_is_named_alone(bed: Bed) -> None:
    name = f"netbench.meter.test{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"\0{name}")
        os.seteuid(UID + 1)
        listener.listen()  # SO_PEERCRED is of who does that
        os.seteuid(0)
        listener.settimeout(1)
        with helper_by_sudo(bed) as (_, worker):
            asked = {"op": "meter_files", "target": ("perf", name, str(UID)), "value": "passed"}
            said = f"the listener is of user {UID + 1}, not of {UID}"
            assert said in refusal(worker, **asked)
        with contextlib.suppress(TimeoutError):
            connection, _ = listener.accept()
            with connection:
                assert connection.recv(4096) == b"", "nothing was sent"


def test_a_mover_takes_descriptors_from_root_alone() -> None:
    """From others nothing is taken, and they do not keep root's from being taken."""
    channel = LocalChannel("here", (str(BUILT),))
    worker, helper = (
        Worker(one, "here") for one in (channel.start_mover(), channel.start_helper())
    )
    with contextlib.ExitStack() as stack:
        for is_root in (False, True):
            name = (worker.operate("meter_socket", "perf", "open")[1] or "").strip()
            os.seteuid(UID)
            for _ in range(3):
                other = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                other.connect(f"\0{name}")
                other.send(b"x" * 1012)
            os.seteuid(0)
            if is_root:
                helper.operate("meter_files", ("perf", name, "0"), "passed")
                worker.operate("meter_socket", "perf", "taken")
            else:
                asked = {"op": "meter_socket", "target": "perf", "value": "taken"}
                assert "no helper has connected" in refusal(worker, **asked)
    for one in (worker, helper):
        one.close()


# --- the host's log -------------------------------------------------------------------------------


NO_LOGGER = "mount -t tmpfs tmpfs /mnt; cp -a /dev/null /mnt; [ ! -S /dev/log ] || mount --bind /mnt/null /dev/log\n"


def test_operations_are_in_a_file_where_the_host_has_no_log(bed: Bed) -> None:
    with helper_by_sudo(bed, NO_LOGGER) as (server, worker):
        refusal(worker, op="lock", target="host", value="x' user='root' \\")
        worker.operate("file", str(TTL), "40", hold=True)
        worker.operate("lock", "host", "fast/20260101+1")
        worker.operate("link", (LINK, "mtu"), "1400", hold=True)
        refusal(worker, op="exec", target=["sh", "-c", "echo \x1b[2J\nfaked line"])
        worker.operate("features", LINK, "rx-gro on\n")
    path = server.folder / "logs" / "netbench.log"
    lines = path.read_text().splitlines()
    assert path.stat().st_mode & 0o777 == 0o600
    forged, *said = [line.partition("]: ")[2] for line in lines]
    assert "campaign='x\\' user=\\'root\\' \\\\' user='bench' set file" in forged
    who = "campaign='fast/20260101+1' user='bench'"
    assert said[0] == f"{who} set link '{LINK} mtu' old '1500' new '1400'"
    assert said[1].startswith(f"{who} refuse exec 'sh -c echo ?[2J?faked line' failed '")
    assert f"{who} undo link '{LINK} mtu' old '1400' new '1500'" in said
    assert said[2].startswith(f"{who} set features '{LINK}' old 'rx-gro: off?rx-lro: off")
    assert "..." in said[2].partition("' new 'rx-gro: on?")[0]
    assert all(" netbench[" in line and line.isprintable() for line in lines)


def test_operations_are_in_the_log_of_the_system(bed: Bed) -> None:
    """A socket stands in for its logger. Once it hangs, lines are in the file."""
    room = int(Path("/proc/sys/net/unix/max_dgram_qlen").read_text())
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as logger:
        logger.bind(str(bed.folder / "log.sock"))
        (bed.folder / "log.sock").chmod(0o666)
        logger.settimeout(10)
        dev = (
            f"mkdir /mnt/dev 2>/dev/null || mount -t tmpfs tmpfs /mnt && mkdir -p /mnt/dev && cp -a"
            f" /dev/null /dev/zero /dev/urandom /dev/random /dev/tty /mnt/dev/; ln -s {bed.folder}/log.sock /mnt/dev/log;"
            " mount --bind /mnt/dev /dev\n"
        )
        with helper_of_root(bed, dev) as (server, worker):
            assert worker.operate("exec", ["echo", "said"])[0] == "said\n", "root without a file"
            assert b" exec 'echo said'" in logger.recv(4096)
            worker.operate("link", (LINK, "mtu"), "1400")
            said = logger.recv(4096).decode()
            assert not (server.folder / "logs" / "netbench.log").exists()
            for _ in range(room + 2):
                worker.operate("link", (LINK, "mtu"), "1500")
    assert said.startswith("<85>")
    assert said.endswith(f"campaign='' user='root' set link '{LINK} mtu' old '1500' new '1400'")
    assert f" set link '{LINK} mtu'" in (server.folder / "logs" / "netbench.log").read_text()


# --- movers ---------------------------------------------------------------------------------------


SECRET = "netbench-of-root-alone"
KEYS = """\
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
enum { JOIN_SESSION_KEYRING = 1, SEARCH = 10, SESSION = -3 };
int main(int count, char **words)
{
    if (count == 1)
        return syscall(SYS_keyctl, SEARCH, SESSION, "user", "netbench", 0) < 0;
    return syscall(SYS_keyctl, JOIN_SESSION_KEYRING, NULL) < 0 ||
           syscall(SYS_add_key, "user", "netbench", "x", 1, SESSION) < 0 ||
           execvp(words[1], words + 1);
}
"""


def memory_has(pid: int, text: str) -> bool:
    """Whether a process has it in memory that it may read."""
    with Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            begin, end = (int(place, 16) for place in line.split()[0].split("-"))
            with contextlib.suppress(OSError, OverflowError):  # the kernel's own pages
                if text.encode() in os.pread(memory.fileno(), end - begin, begin):
                    return True
    return False


def test_a_mover_of_another_user_has_nothing_of_roots(bed: Bed) -> None:
    """Neither its environment, which the user could read in /proc, nor its keys, nor its folder."""
    keys = compiled(bed, "keys", KEYS)
    home = bed.folder / "plain"
    home.mkdir()
    account = (
        f"echo 'plain:x:{UID + 1}:{UID + 1}:P. Lain:{home}:/bin/sh' >> /etc/passwd;"
        f" echo 'plain:x:{UID + 1}:' >> /etc/group; echo 'more:x:{UID + 2}:plain' >> /etc/group\n"
    )
    session = f'SetEnv TOKEN={SECRET}\nForceCommand exec {keys} sh -c "$SSH_ORIGINAL_COMMAND"'
    _, channel = bed.host(setup=OWN + account, sshd=session)
    with talking(channel.start_mover()) as root:
        assert memory_has(root.hello.pid, SECRET)
        root.operate("exec", [str(keys)])
    with talking(channel.start_mover("plain")) as plain:
        status = Path(f"/proc/{plain.hello.pid}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines())
        assert fields["Uid"].split() == fields["Gid"].split() == [str(plain.hello.user)] * 4
        assert plain.operate("exec", ["id", "-u"])[0].strip() == str(UID + 1)
        assert set(fields["Groups"].split()) == {str(UID + 1), str(UID + 2)}
        assert (fields["NoNewPrivs"], fields["CapEff"]) == ("1", "0" * 16)
        assert not memory_has(plain.hello.pid, SECRET)
        assert "exit status 1" in refusal(plain, op="exec", target=[str(keys)])
        assert plain.operate("exec", ["pwd"])[0] == f"{home}\n"
        words = plain.operate("exec", ["env"])[0].splitlines()
    environment = dict(line.split("=", 1) for line in words)
    assert environment.pop("PATH").startswith("/usr/local/sbin:")
    assert environment == {"HOME": str(home), "USER": "plain", "LOGNAME": "plain"}


def test_a_mover_never_stays_root_and_drops_no_group(bed: Bed) -> None:
    odd = {
        f"odd1:x:{2**32 - 1}:{UID}::/:/bin/sh": "no user 'odd1'",
        f"odd2:x:{UID}:{2**32 - 1}::/:/bin/sh": "no user 'odd2'",
        f"odd3:x:{UID + 1}:{UID + 1}::/:/bin/sh": "more than 256 groups",
    }
    accounts = "".join(f"echo '{entry}' >> /etc/passwd\n" for entry in odd)
    groups = "seq 300 | sed 's/.*/more&:x:7&:odd3/' >> /etc/group\n"
    _, channel = bed.host(setup=OWN + accounts + groups)
    named = {entry.partition(":")[0]: says for entry, says in odd.items()}
    for user, says in {**named, "no-such": "'no-such'"}.items():
        with pytest.raises(EngineError, match=f"run_as: .*{says}"):
            Worker(channel.start_mover(user), "snd")
    with pytest.raises(EngineError, match=r"run_as: .*'root'"):
        Worker(bed.host(user="bench")[1].start_mover("root"), "snd")


# --- campaigns ------------------------------------------------------------------------------------

ACCOUNT = f"echo 'bench:x:{UID}:{UID}::/:/bin/sh' >> /etc/passwd\n"
CAMPAIGN = """\
netbench: 1
name: apart
verify: off
ssh_config: {config}
hosts: {{snd: {{ssh: box, address: 127.0.0.1}}}}
transfer: {{duration: 100ms, warmup: 10ms, congestion: reno}}
repeat: {{min: 1, max: 1}}
"""
HELD = "settings: {sysctl.net.ipv4.ip_default_ttl: 40}\n"
METERED = "meters: [rusage, perf]\n"
PROFILED = "profile: {cells: all, seconds: 100ms, runs: 1}\n"
WITHOUT = f"root is needed: kernel.perf_event_paranoid is {PARANOID}, and `sudo -n` gives none"
AS_BENCH = ", run_as: bench"


def reached(bed: Bed, login: str = "bench", setup: str | None = None) -> Server:
    """The host of a campaign: by sudo, or as root of a host that has the account of the tests."""
    if setup is None:
        setup = sudo_rule(bed) if login == "bench" else OWN + ACCOUNT
    server = bed.serve(user=login, setup=setup)
    bed.configure(bed.alias(server, login))
    return server


def parsed(bed: Bed, extra: str = HELD, of_host: str = "") -> Campaign:
    text = CAMPAIGN.format(config=bed.config).replace("127.0.0.1}", f"127.0.0.1{of_host}}}")
    return campaign.parse(text + extra, "apart.yaml")


def findings(wanted: Campaign) -> list[str]:
    with WorkerPool(wanted) as pool:
        return [str(finding) for finding in check(wanted, pool)]


def facts_of(path: Path) -> dict[str, Any]:
    return dict(json.loads((path / "facts.json").read_text())["hosts"]["snd"][-1])


@pytest.fixture(autouse=True)
def no_locks() -> Iterator[None]:
    """Without the lock of an account that may not write into HOME, which is root's here."""
    yield
    shutil.rmtree(f"/tmp/netbench-{UID}", ignore_errors=True)


@pytest.fixture
def before_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Callable[[WorkerPool], object]], None]:
    """Calls a function with the pool of workers while a run is under way."""

    def install(look: Callable[[WorkerPool], object]) -> None:
        honest = Runner._measure

        def measure(self: Runner, *args: Any) -> Any:
            look(self._pool)
            return honest(self, *args)

        monkeypatch.setattr(Runner, "_measure", measure)

    return install


AS_ROOT = "warning: snd: data, sources, sinks and tools run as root; write `run_as: USER`"
# How a host is reached, its file, a campaign, what `check` says of it, and what it does not.
CHECKS: Mapping[str, tuple[str, str, str, tuple[str, ...], str]] = {
    "an operation": ("helper", "", HELD, (
        f"ok: snd: needs root: file {TTL} 40 (sysctl.net.ipv4.ip_default_ttl: 40)",), "run as root"),
    "also without sudo": ("no-helper", "", HELD, ("sudoers.d", f"needs root: file {TTL} 40"), AS_ROOT),
    "a line that forbids": ("helper", "setting mtu", HELD + "sweep: {sender.mtu: [1400]}\n", (
        f"{NO_LINE} `sysctl net.ipv4.ip_default_ttl`", "needs root: link lo mtu 1400"), AS_ROOT),
    "a meter": ("helper", "", METERED, ("ok: snd: needs root: meter_files perf (meters: perf)",), "error: "),
    "a meter that is forbidden": ("helper", "setting energy", METERED, (
        "warning: snd: meters: perf: ", f"{NO_LINE} `setting perf`"), "error: "),
    "a mover that root becomes": (AS_BENCH, "", HELD, (), AS_ROOT),
}  # fmt: skip


@pytest.mark.parametrize("case", CHECKS)
def test_check_lists_what_needs_root(bed: Bed, case: str) -> None:
    how, file, text, said, unsaid = CHECKS[case]
    if text == METERED and PARANOID < 1:
        pytest.skip("kernel.perf_event_paranoid lets every user count all CPUs")
    before = TTL.read_text()
    if how == AS_BENCH:
        reached(bed, "root")
    else:
        reached(bed, setup=sudo_rule(bed, f" {how}") + (allow_file(file) if file else ""))
    lines = "\n".join(findings(parsed(bed, text, how if how == AS_BENCH else "")))
    assert [words for words in said if words not in lines] == []
    assert unsaid not in lines
    assert TTL.read_text() == before


@pytest.mark.parametrize("login", ["bench", "root"])
def test_data_moves_without_root_while_a_helper_holds_settings(
    bed: Bed, tmp_path: Path, login: str, before_runs: Callable[..., None]
) -> None:
    """The pool's workers are looked at while the campaign's only run is under way."""
    server = reached(bed, login)
    place = tmp_path / "sinks"
    place.mkdir()
    os.chown(place, UID, UID)
    seen: dict[str, int] = {}
    ttl: list[str] = []

    def look(pool: WorkerPool) -> None:
        for (_, role), worker in pool.workers().items():
            status = Path(f"/proc/{worker.hello.pid}/status").read_text()
            seen[role] = int(status.partition("Uid:")[2].split()[1])
        ttl.append(TTL.read_text())

    before_runs(look)
    before = TTL.read_text()
    sink = f"pairs: [{{sender: snd, receiver: snd}}]\nsweep: {{sink: [{{file: {place}/out}}]}}\n"
    wanted = parsed(bed, HELD + sink, AS_BENCH if login == "root" else "")
    conclusion = conductor.start(wanted, tmp_path / "results")
    assert (conclusion.why, conclusion.failed) == ("done", False)
    assert seen == {"sender": UID, "receiver": UID, "helper": 0}
    assert (ttl, TTL.read_text()) == (["40\n"], before)
    assert (place / "out").stat().st_uid == UID
    log = (server.folder / "logs" / "netbench.log").read_text() if login == "bench" else ""
    assert login == "root" or "campaign='apart/" in log


@pytest.mark.parametrize("allowed", [False, True])
def test_a_campaign_goes_on_without_the_profile_that_its_host_does_not_allow(
    bed: Bed, tmp_path: Path, allowed: bool
) -> None:
    rights = allow_file("setting profile\n") if allowed else ""
    server = reached(bed, setup=sudo_rule(bed) + rights)
    wanted, why = parsed(bed, PROFILED), "" if allowed else "a line that allows `setting profile`"
    said = [line for line in findings(wanted) if "profile" in line]
    if allowed:
        assert said == ["ok: snd: needs root: profile sampling 'ready 997' (profile)"]
    else:
        assert [line for line in said if line.startswith("warning") and why in line], said
    conclusion = conductor.start(wanted, tmp_path / "results")
    assert (conclusion.why, conclusion.failed) == ("done", False)
    (one,) = read_profile_runs(conclusion.path)
    assert one.status == ("ok" if allowed else "unsupported")
    assert why in one.reason
    log = (server.folder / "logs" / "netbench.log").read_text()
    assert "campaign='apart/" in log
    assert f"{'set' if allowed else 'refuse'} profile 'sampling'" in log


NOT_ROOT = "the login is not root, and nothing else of the"
TCP_METRICS = {
    "a user with sudo": ("bench", "sudo", "", NOT_ROOT),
    "root as another user": ("root", "", AS_BENCH, ""),
    "forbidden": ("root", "setting mtu", "", "no line that allows `setting tcp_metrics`"),
    "allowed": ("root", "setting tcp_metrics", "", ""),
}


@pytest.mark.parametrize("case", TCP_METRICS)
def test_a_campaign_drops_what_tcp_has_learnt_where_it_has_root_anyway(
    bed: Bed, tmp_path: Path, case: str, before_runs: Callable[..., None]
) -> None:
    """Elsewhere it goes on, with the fact and a caution, and starts no helper."""
    login, file, more, why = TCP_METRICS[case]
    rights = sudo_rule(bed) if file == "sudo" else OWN + ACCOUNT if login == "root" else ""
    reached(bed, login, rights + (allow_file(file) if file not in ("", "sudo") else ""))
    NO_SAVE.write_text("0")  # as it is where no killed campaign of another test has left it
    roles: set[str] = set()
    before_runs(lambda pool: roles.update(role for _, role in pool.workers()))
    conclusion = conductor.start(parsed(bed, "", more), tmp_path / "results")
    assert (conclusion.why, conclusion.failed) == ("done", False)
    known = facts_of(conclusion.path)
    assert why in known.get("not_held", {}).get("tcp_metrics", "")
    assert known["facts"]["tcp_no_metrics_save"] == ("0" if why else "1")
    assert ("helper" in roles) == (login == "root")
    report = call("report", "--full", conclusion.path).stdout
    assert ("[tcp_metrics]" in report) == bool(why)
    assert not why or "ip tcp_metrics flush" in " ".join(report.split())
    assert NO_SAVE.read_text() == "0\n"


def test_what_roots_helper_has_undone_is_known_to_a_campaign_of_movers(
    bed: Bed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    reached(bed)
    dead = campaign_state.begin(dict.fromkeys(CAMPAIGN_FILES, b""), tmp_path / "gone")
    with WorkerPool(parsed(bed)) as pool:
        helper, written = pool.helper("snd"), Journal(dead.journal)
        written.write(Change(1, "snd", helper.hello.boot_id, "x", "exec", ("x",), "", ""))
        assert any("a dead campaign has left x changed" in each for each in findings(parsed(bed)))
        for step in ("begin", "1"):
            helper.operate("undone", (dead.path.name, "0"), step)
    assert not any("a dead campaign" in each for each in findings(parsed(bed, "")))


@pytest.mark.slow
def test_a_helper_of_sudo_that_is_stopped_is_ended_and_undone_from_the_journal(
    bed: Bed, tmp_path: Path, before_runs: Callable[..., None]
) -> None:
    reached(bed)
    before, stopped = TTL.read_text(), list[int]()

    def stop(pool: WorkerPool) -> None:
        if not stopped:
            pid = pool.workers()["snd", "helper"].hello.pid
            stat = Path(f"/proc/{pid}/stat").read_text()
            stopped.append(int(stat.rpartition(")")[2].split()[1]))  # its parent: sudo
            os.kill(pid, signal.SIGSTOP)

    before_runs(stop)
    begun = time.monotonic()
    conclusion = conductor.start(parsed(bed), tmp_path / "results")
    assert time.monotonic() - begun < 40, "silence and patience take 30 s at most"
    wait_for(lambda: not Path(f"/proc/{stopped[0]}").exists())  # sudo went with its helper
    assert (conclusion.why, TTL.read_text()) == ("done", before)
