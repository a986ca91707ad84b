"""What a step of the loop itself costs, by the method that moves nothing."""

from __future__ import annotations

from netbench.engine.binding import Edge
from netbench.engine.worker import Outcome, Worker
from netbench.run.exchange import Exchange, exchange
from tools.bench import engine_pair
from tools.bench.table import Part, Row

BUDGET = 20.0  # ns
HOW = (
    "`null` to `null`, {repeats} runs of {window_ms} ms: the CPU time of the whole worker in the"
    " window (rusage) over its steps, so a flow's share is less. Shown are the median and the"
    " largest; the budget is the median's, since others on the machine can only add."
)


def measure(repeats: int = 20, window_ms: int = 100) -> Part:
    """A row a side."""
    with engine_pair.open_pair() as pair:
        runs = [_run(pair, window_ms) for _ in range(repeats)]
        sides = {
            "sender": [_step_ns(pair.sender, run.sender) for run in runs],
            "receiver": [_step_ns(pair.receiver, run.receiver) for run in runs],
        }
    how = HOW.format(repeats=repeats, window_ms=window_ms)
    return Part("The loop itself", how, tuple(_row(*side) for side in sides.items()))


def _run(pair: engine_pair.Pair, window_ms: int) -> Exchange:
    common = engine_pair.common_options() | {
        "meters": "rusage",
        "duration": window_ms * 10**6,
        "warmup": 10**7,
        "sample": 0,
        "method": "null",
    }
    return exchange(
        pair.sender,
        pair.receiver,
        common | {"role": "send", "chunk": 65536, "source": "memory"},
        common | {"role": "receive", "receive_chunk": 65536},
    )


def _step_ns(worker: Worker, outcome: Outcome) -> float:
    """CPU time of a step in the window."""
    steps, cpu = (
        engine_pair.total(worker, outcome, name, Edge.CLOSE)
        - engine_pair.total(worker, outcome, name, Edge.OPEN)
        for name in ("steps", "cpu_ns")
    )
    return cpu / max(steps, 1)


def _row(side: str, costs: list[float]) -> Row:
    ordered = sorted(costs)
    median = ordered[len(ordered) // 2]
    return Row(
        f"a step of the {side}",
        f"{median:.1f} ns",
        "",
        f"{ordered[0]:.1f} to {ordered[-1]:.1f} ns, n = {len(costs)}",
        f"at most {BUDGET:g} ns",
        median <= BUDGET,
    )
