"""Kernels that are compared by one build each, or by few."""

from __future__ import annotations

from netbench.base.units import listed
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence
from netbench.stats.by_boot import ENOUGH, KERNEL, half_width

NAMED = 4
PUBLISHED = (
    "Linux 09c60546f04f: forced alignment of functions alone moved TCP_RR by 2 to 18%, TCP_STREAM"
    " by -1 to +2%"
)


class Builds(CautionRule):
    """Any change of the source moves the code behind it, and where code lies is measured too."""

    name = "builds"
    severity = 125
    about = f"Compared kernels have one build each, or fewer than {ENOUGH}."
    reads = "the factor `kernel`, the builds of plan.json"
    shows = (
        "what the layout of code alone has moved, or how wide an interval over so many builds is"
    )
    remedy = "`builds: 4` of each kernel from git, or a list of builds"

    def report(self, evidence: Evidence) -> Cautions:
        result = evidence.result
        if KERNEL not in result.factors or len(set(result.kernels.values())) < 2:
            return
        booted = set(result.kernels.values())
        levels = [str(level) for level in result.runs[KERNEL].cat.categories]
        builds = {level: result.builds.get(level, 1) for level in levels if level in booted}
        if single := [level for level, number in builds.items() if number == 1]:
            yield self.caution(
                f"One build of {listed(single, NAMED, ', ')}: a difference between kernels holds"
                " what the layout of their code happens to be.",
                (),
                PUBLISHED,
            )
        few = min(builds.values())
        if 1 < few < ENOUGH:
            width = half_width(few, result.repeat.confidence)
            yield self.caution(
                f"The kernels have {few} builds, which proves little.",
                (),
                f"an interval over {few} builds is ±{width:.1f} standard deviations of a build's"
                " mean",
            )
