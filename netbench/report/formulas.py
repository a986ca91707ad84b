"""How each metric of a result follows from raw counters, by the names that records have for
them.
"""

from __future__ import annotations

from netbench.read.accounts import Account, accounts_of
from netbench.read.result import Result
from netbench.read.soak import SOAK

_PER_SECOND = {"ns": " / 10^9", "us": " / 10^6", "ticks": " / clock ticks a second"}

_SOAKED = (
    "{who}'s soak.cpus × (t - i) / (1 - i), where t is soak.taken_ns / (window × soak.cpus) and i"
    " is soak.idle_taken_ns / (soak.idle_time_ns × soak.idle_cpus), without what a hypervisor took"
    " (soak.stolen_ns, soak.idle_stolen_ns)"
)


def formula(result: Result, metric: str) -> str:
    """The formula of a metric, with the counters of the meter that it is by."""
    bare, _, meter = metric.partition(".")
    who, _, what = bare.partition("_")
    if what not in ("cpu", "demand") or who not in ("sender", "receiver", "system"):
        return _of_both(result, metric)
    if what == "demand":
        cpu = f"{who}_cpu.{meter}" if meter else f"{who}_cpu"
        return f"{cpu} × 10^6 / (throughput × 10^9 / 8 / 1024)"
    if not meter:
        return _by_best_meter(result, bare)
    account = accounts_of(result.plan.rows).get(meter)
    if account is None and meter != SOAK:
        return result.describe(metric).formula
    host_wide = account is None or account.host_wide
    if who == "system" and not (host_wide and all(result.shared.values())):
        return f"sender_cpu.{meter} + receiver_cpu.{meter}"
    side = "sender" if who == "system" else who
    if account is None:
        return _SOAKED.format(who=side)
    counted = any((row.owner, row.name) == (meter, "cpus") for row in result.plan.rows)
    return _of_account(account, side, counted and bool(account.idle))


def _of_both(result: Result, metric: str) -> str:
    """What is as a side's own metric, where no side has one: both ends counted together."""
    told = result.describe(metric).formula
    of_side = told.removeprefix("as ").partition(",")[0]
    if told == of_side or f"sender_{metric}" != of_side or of_side in result.metrics:
        return told
    return f"{result.describe(of_side).formula}; one kernel is both ends"


def _by_best_meter(result: Result, metric: str) -> str:
    order = result.meters.get(metric, ())
    there = [f"{metric}.{meter}" for meter in order if f"{metric}.{meter}" in result.metrics]
    if not there:
        return result.describe(metric).formula
    return there[0] if len(there) == 1 else f"the first that there is of {', '.join(there)}"


def _of_account(account: Account, who: str, by_idle: bool) -> str:
    counters, parts = account.idle if by_idle else account.counters, []
    for unit in dict.fromkeys(unit for _, unit in counters):
        names = [f"{account.meter}.{name}" for name, each in counters if each == unit]
        counted = f"({' + '.join(names)})" if len(names) > 1 else names[0]
        parts.append(f"{counted}{_PER_SECOND[unit]}")
    whole = f"({' + '.join(parts)})" if len(parts) > 1 else parts[0]
    spent = f"{who}'s {whole} / {who}'s window"
    return f"{who}'s {account.meter}.cpus - {spent}" if by_idle else spent
