"""Profiles tell the truth: of methods that spend 30% and 10% of their time in a library of their
own (a program's frames are told by file), and of the kernel as perf(1) sees it. The methods are
added to a copy of the project, as docs/adding-a-method.md says.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from netbench.engine.worker import Worker
from netbench.hosts.local import LocalChannel
from tests.docs.test_adding_guides import built, copied, python

pytestmark = [pytest.mark.slow, pytest.mark.root]

# Of ten equal pieces of work a step does some in the library and the rest in the engine; then it
# sends what a step sends, which takes less than a hundredth of it. Pieces are longer or shorter from
# step to step: steps of one length, a few milliseconds, would fall into step with the samples.
WORK = """\
static volatile unsigned long sink;

void hot_work(long iterations)
{
	unsigned long value = sink;
	for (long i = 0; i < iterations; i++)
		value = value * 6364136223846793005UL + 1;
	sink = value;
}
"""
HOT = "libhot.so"
METHOD = """\
#include <dlfcn.h>

#include "../method.h"

static const struct nb_field proofs[] = { NB_CALLS("write_calls", "calls", 0),
	NB_CALLS("short_writes", "short", 0) };

static volatile uint64_t sink;
static void (*hot_work)(long iterations);

__attribute__((noipa)) static void cold_work(long iterations)
{
	uint64_t value = sink;
	for (long i = 0; i < iterations; i++)
		value = value * 6364136223846793005ULL + 1;
	sink = value;
}

static int open_buffer(struct nb_flow *flow, struct nb_error *error)
{
	void *library = dlopen("HOT", RTLD_NOW);

	hot_work = (void (*)(long))dlsym(library, "hot_work");
	return nb_flow_buffer(flow, flow->job->chunk, error);
}

#define METHOD(word, hot)                                                      \\
	static ssize_t step_##word(struct nb_flow *flow, size_t most)          \\
	{                                                                      \\
		long piece = 100000 + (long)(sink >> 40) % 200000;             \\
		hot_work(hot * piece);                                         \\
		cold_work((10 - hot) * piece);                                 \\
		return nb_flow_write(flow, flow->buffer, most, 0, 1);          \\
	}                                                                      \\
	const struct nb_method nb_send_##word = {                              \\
		.name = #word,                                                 \\
		.about = "work with a known share in one function",            \\
		.flags = NB_DELIVERS | NB_FROM_MEMORY | NB_BUFFERS,            \\
		.proofs = proofs,                                              \\
		.proofs_count = NB_LENGTH(proofs),                             \\
		.open = open_buffer,                                           \\
		.step = step_##word,                                           \\
	};
METHOD(thirty, 3)
METHOD(ten, 1)
"""
CAMPAIGN = """\
netbench: 1
name: truth
verify: off
transfer: {duration: 50ms, warmup: 10ms, congestion: reno, chunk: 4K}
sweep: {send: [ten, thirty]}
repeat: {min: 1, max: 1}
profile: {cells: all, seconds: 5, runs: 3}
compare: {factor: send, baseline: ten}
"""
RUN = """\
from pathlib import Path
from netbench import campaign
from netbench.run import conductor
from netbench.report.build import build
done = conductor.start(campaign.parse({text!r}, "truth.yaml"), Path({results!r}))
source = build(done.path).source
answer = {{"cells": {{}}, "changed": []}}
for cell in source.profiles.cells:
    counts = {{}}
    for run in cell.runs:
        for stack, count in run.stacks.items():
            if stack[0] == "sender":
                counts[stack[-1]] = counts.get(stack[-1], 0) + count
    answer["cells"][cell.cell] = counts
for change in source.profile_differences:
    answer["changed"] += [[f.name, f.before, f.after, f.change.low] for f in change.functions[:4]]
"""


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What profiles say of the two methods."""
    folder = copied(tmp_path_factory.mktemp("hot"))
    hot = folder / HOT
    subprocess.run(
        ["gcc", "-O0", "-shared", "-fPIC", "-xc", "-o", hot, "-"], input=WORK, text=True, check=True
    )
    (folder / "native/src/methods/send_known.c").write_text(METHOD.replace("HOT", str(hot)))
    table = folder / "native/src/methods/table.c"
    table.write_text(
        table.read_text().replace("row(write) \\\n", "row(write) row(ten) row(thirty) \\\n", 1)
    )
    results = tmp_path_factory.mktemp("results")
    code = RUN.format(text=CAMPAIGN, results=str(results))
    return python(built(folder), code)  # type: ignore[return-value]


@pytest.mark.parametrize(("method", "share"), [("thirty", 0.3), ("ten", 0.1)])
def test_a_hot_library_has_its_share(
    profiled: dict[str, dict[str, dict[str, int]]], method: str, share: float
) -> None:
    """Within two points of a hundred. With n samples the share has a standard deviation of
    sqrt(p(1-p)/n): 0.5 points of 30% with 8,400 samples, which a sender gets that has half a CPU
    in 15 s at 997 Hz and more.
    """
    counts = profiled["cells"][f"send={method}"]
    every = sum(counts.values())
    assert every > 4000, "too few samples to tell two points"
    assert abs(counts[f"[{HOT}]"] / every - share) <= 0.02, counts


def test_what_grew_is_first_among_the_differences(
    profiled: dict[str, list[tuple[str, float, float, float]]],
) -> None:
    changes = {name: (before, after, low) for name, before, after, low in profiled["changed"]}
    before, after, low = changes[f"[{HOT}]"]
    assert after > before
    assert low > 0, "the whole interval of the change lies above nothing"


LOAD = ["dd", "if=/dev/zero", "of=/dev/null", "bs=4k", "status=none"]
SECONDS = 4


@pytest.mark.skipif(
    not shutil.which("perf"), reason="linux-perf is not installed (apt-get install linux-perf)"
)
def test_functions_of_the_kernel_are_those_that_perf_reports(tmp_path: Path) -> None:
    """Both sample the same seconds of the same load; the share of each function that either gives
    3% of it agrees within four standard deviations of two counts.
    """
    helper = Worker(LocalChannel("here").start_helper(), "here")
    load = subprocess.Popen(LOAD)
    try:
        helper.operate("profile", "sampling", "ready 997")
        helper.operate("profile", "sampling", "on")
        data = tmp_path / "perf.data"
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "997", "-p", str(load.pid)]
        subprocess.run([*record, "-o", data, "sleep", str(SECONDS)], check=True)
        helper.operate("profile", "sampling", "off")
        text, part = "", 0
        while more := helper.operate("profile", str(part))[0]:
            text, part = text + more, part + 1
    finally:
        load.kill()
        load.wait()
        helper.close()
    mine = by_address(leaves(text, load.pid))
    theirs = by_address(reported(data))
    assert sum(mine.values()) > 500
    for name in {
        name
        for counts in (mine, theirs)
        for name, n in counts.items()
        if n > 0.03 * sum(counts.values())
    }:
        one, other = (counts[name] / sum(counts.values()) for counts in (mine, theirs))
        sd = sum(
            max(p, 0.01) / sum(counts.values()) for p, counts in ((one, mine), (other, theirs))
        )
        assert abs(one - other) < 4 * sd**0.5 + 0.01, (name, one, other)


def by_address(counts: Counter[str]) -> Counter[str]:
    """The same by address: a function that has several names is called differently by each tool."""
    symbols = (line.split() for line in Path("/proc/kallsyms").read_text().splitlines())
    address = {symbol[2]: symbol[0] for symbol in symbols}
    found: Counter[str] = Counter()
    for name, samples in counts.items():
        found[address.get(name, name)] += samples
    return found


def leaves(text: str, pid: int) -> Counter[str]:
    """Samples by the kernel's function of one process."""
    frames, pids = [], []
    counts: Counter[str] = Counter()
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "f":
            frames.append(rest)
        elif kind == "p":
            pids.append(int(rest.split()[0]))
        elif kind == "s":
            samples, _, process, *chain = map(int, rest.split())
            if pids[process] == pid and chain and frames[chain[-1]].startswith("k "):
                counts[frames[chain[-1]][2:].split(" [")[0]] += samples
    return counts


def reported(data: Path) -> Counter[str]:
    """The same by `perf report`."""
    shape = "--stdio -q --sort symbol -n -F sample,symbol"
    said = subprocess.run(
        ["perf", "report", "-i", str(data), *shape.split()],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PERF_BUILDID_DIR": "/nonexistent"},
    )
    counts: Counter[str] = Counter()
    for line in said.stdout.splitlines():
        words = line.split()
        if len(words) >= 3 and words[0].isdigit() and words[1] == "[k]":
            counts[words[2]] += int(words[0])
    return counts
