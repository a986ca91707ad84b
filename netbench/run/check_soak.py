"""Whether what soak takes for granted holds on a host: that soakers get only what nobody else
wants, and that what they lose was taken by a load.
"""

from __future__ import annotations

from collections.abc import Iterator

from netbench.engine.worker import Worker
from netbench.run.noise import Question

CPUS = "/sys/devices/system/cpu"
FILES: dict[str, Question] = {
    "cgroup": ("file", ("/proc/self/cgroup",)),
    "controllers": ("file", ("/sys/fs/cgroup/cgroup.subtree_control",)),
    "smt": ("file", (f"{CPUS}/smt/active",)),
    "isolated": ("file", (f"{CPUS}/isolated",)),
    "nohz_full": ("file", (f"{CPUS}/nohz_full",)),
    "stat": ("file", ("/proc/stat",)),
}
STOLEN = 0.01  # of all CPU time since the host was booted

Doubt = tuple[str, str]
"""What does not hold, and what to do."""


def doubts(worker: Worker) -> Iterator[Doubt]:
    """What soak takes for granted and does not hold on a worker's host. Errors: those of a
    worker.
    """
    answers = worker.ask(list(FILES.values()))
    texts = {
        name: answer.strip() if isinstance(answer, str) else ""
        for name, answer in zip(FILES, answers, strict=True)
    }
    yield from of_texts(texts)


def of_texts(texts: dict[str, str]) -> Iterator[Doubt]:
    """Of what the FILES say; "" for one that is not there."""
    if group := _weighted_group(texts["cgroup"], texts["controllers"]):
        yield (
            f"the soakers are in the cgroup {group}, and SCHED_IDLE holds only within a cgroup: a"
            " load in another one is slowed by them, and looks smaller",
            "run the load and netbench in one cgroup, or boot without the cpu controller",
        )
    if texts["smt"] == "1":
        yield (
            "SMT is on: a soaker slows the load on its core's other thread, and the load the"
            " soaker (slow_down), which `busy` does not count",
            "turn SMT off, or compare with a run without soak",
        )
    if texts["isolated"] or texts["nohz_full"] not in ("", "(null)"):
        cpus = texts["isolated"] or texts["nohz_full"]
        yield (
            f"the CPUs {cpus} are isolated from the scheduler or from its tick: with a soaker they"
            " are not, as two processes run there",
            "leave soak out where isolation is what you measure",
        )
    if _stolen(texts["stat"]) >= STOLEN:
        yield (
            f"the hypervisor has taken {_stolen(texts['stat']):.1%} of the CPUs' time since the"
            " boot: `busy` is without that, to a tick of 10 ms in each window, so short windows"
            " differ more",
            "use a machine whose CPUs are not shared",
        )


def _weighted_group(cgroup: str, controllers: str) -> str:
    """The cgroup whose weight stands between the soakers and other groups; "" where none does.
    cgroups(7): a line is ID:CONTROLLERS:PATH, of version 2 0::PATH.
    """
    for line in cgroup.splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        weighs = "cpu" in names.split(",") if names else "cpu" in controllers.split()
        if weighs and path not in ("", "/"):
            return path
    return ""


def _stolen(stat: str) -> float:
    """The share of steal in the line of all CPUs of /proc/stat (proc(5))."""
    words = stat.partition("\n")[0].split()
    numbers = [int(word) for word in words[1:9] if word.isdecimal()]
    total = sum(numbers)
    return numbers[7] / total if len(numbers) == 8 and total else 0.0
