"""The search for the first bad commit, where telling a good one from a bad one is a campaign: each
is compared with the good revision measured again, never with an old result.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from netbench import campaign
from netbench.base.errors import RequestError
from netbench.kernels.revision import bisection, commit_of, require_ancestor, subject
from netbench.model import Campaign, Kernel


class Says(Enum):
    """What a step says of its commit."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "cannot tell"


class Answer(NamedTuple):
    """What a campaign said of a commit: `why` in words, with the intervals."""

    says: Says
    why: str


class Step(NamedTuple):
    """A commit that was looked at."""

    commit: str
    subject: str
    answer: Answer

    @property
    def line(self) -> str:
        """For the log: `0123456789ab bad: what was seen [subject]`."""
        return f"{self.commit[:12]} {self.answer.says.value}: {self.answer.why} [{self.subject}]"


class Sides(NamedTuple):
    """The names of a campaign's two kernels: `good` is the baseline."""

    good: str
    tried: str


def sides_of(wanted: Campaign) -> Sides:
    """The two kernels of a campaign that can be bisected. Errors: RequestError for another."""
    asked = wanted.compare
    kernels = [kernel for kernel in wanted.kernels.values() if kernel.git]
    are_two = len(kernels) == len(wanted.kernels) == 2
    if asked is None or asked.factor != "kernel" or not are_two:
        raise RequestError(
            "bisect: expected a campaign that compares two kernels from git, such as `judge`"
            " writes: `kernels:` with two of `{git: REPO, rev: REV}`, and `compare: {factor:"
            " kernel}`"
        )
    tried = next(kernel.name for kernel in kernels if kernel.name != asked.baseline)
    return Sides(asked.baseline, tried)


def between(wanted: Campaign, good: str, tried: str) -> Campaign:
    """The campaign with a good revision and one that is tried. Errors: RequestError."""
    sides = sides_of(wanted)
    revisions = {sides.good: good, sides.tried: tried}
    return campaign.changed(wanted, {f"kernels.{n}.rev": rev for n, rev in revisions.items()})


def search(
    kernel: Kernel,
    good: str,
    bad: str,
    ask: Callable[[str, str], Answer],
    told: Callable[[Step], None],
) -> list[str]:
    """The commits of which the first bad one is: one, where no step was skipped. `ask` gets the
    good commit and the one that is tried, `told` each step. Errors: RequestError where the bad
    revision is not seen to be bad.
    """

    def look(commit: str) -> Answer:
        answer = ask(first, commit)
        told(Step(commit, subject(kernel, commit), answer))
        return answer

    first, last = (commit_of(kernel._replace(rev=rev)) for rev in (good, bad))
    require_ancestor(kernel, first, last)
    goods, skipped = [first], set[str]()
    suspects = bisection(kernel, last, goods)
    seen = look(last)
    if seen.says is not Says.BAD:
        raise RequestError(
            f"bisect: {bad} is not seen to be worse than {good}: {seen.why}; there is nothing to"
            " search for, unless more boots or another gate show it"
        )
    while left := [each for each in suspects if each != last and each not in skipped]:
        tried = left[0]
        says = look(tried).says
        if says is Says.BAD:
            last = tried
        elif says is Says.GOOD:
            goods.append(tried)
        else:
            skipped.add(tried)
        suspects = bisection(kernel, last, goods)
    return suspects
