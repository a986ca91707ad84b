"""matplotlib's SVG as part of a page: colours that follow the page's, a title and a description,
and points that are links.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from netbench.report.palette import VARIABLES

POINTS = "netbench-points"
"""The id of a group whose n-th marker is the n-th of Drawing.points."""
_COLOUR = re.compile("|".join(map(re.escape, VARIABLES)))
_NUMBER = re.compile(r'(?<=[xy]=")-?\d+\.\d+(?=")')
_USE = re.compile(r'<use xlink:href="(#[\w.-]+)" x="([^"]*)" y="([^"]*)" style="([^"]*)"/>')


@dataclass(frozen=True)
class Point:
    """Where a marker leads, and what it is."""

    to: str
    title: str


def part_of_page(svg: str, salt: str, title: str, about: str, points: Sequence[Point] = ()) -> str:
    """An SVG document as part of an HTML page: ids unique on the page, no namespaces or metadata,
    which hold addresses. `salt` keeps ids apart on one page.
    """
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = _linked(svg, points) if points else svg
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = svg.replace(' target="_blank"', "")
    used = set(re.findall(r"""(?:href="|url\()#([\w.-]+)""", svg))
    made = {each.to[1:] for each in points}
    svg = re.sub(r' id="([^"]*)"', lambda m: f' id="{salt}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(
        r"""(href="|url\()#([\w.-]+)""",
        lambda m: m[0] if _leads_out(m[2], made) else f"{m[1]}#{salt}-{m[2]}",
        svg,
    )
    svg = re.sub(r" font-family: [^;\"]*;", "", re.sub(r"\n\s*", "\n", svg))
    svg = _COLOUR.sub(lambda m: f"var({VARIABLES[m[0]]})", svg)
    # What holds links is no image, of which a screen reader would not tell the parts.
    role = "group" if points or 'href="#cell-' in svg else "img"
    names = (
        f'<title id="{salt}-t">{escape(title)}</title><desc id="{salt}-d">{escape(about)}</desc>'
    )
    head = f'<svg role="{role}" aria-labelledby="{salt}-t" aria-describedby="{salt}-d"'
    return re.sub(r"<svg([^>]*)>", lambda m: f"{head}{m[1]}>{names}", svg, count=1)


def _leads_out(name: str, made: set[str]) -> bool:
    """Whether an address is one of the page, and not of this drawing."""
    return name in made or name.startswith("cell-")


def _linked(svg: str, points: Sequence[Point]) -> str:
    """The drawing with the markers of its group POINTS as links; without, if there are not as many
    (a marker may lie outside).
    """
    start = svg.find(f'<g id="{POINTS}">')
    end = svg.find("</g>", start)
    markers = _USE.findall(svg, start, end) if start >= 0 else []
    if len(markers) != len(points):
        return svg
    style = markers[0][3]
    links = "\n".join(
        f'<a href="{each.to}" tabindex="-1"><title>{escape(each.title)}</title>'
        f'<use xlink:href="{to}" x="{float(x):.1f}" y="{float(y):.1f}"/></a>'
        if each.to
        else f'<use xlink:href="{to}" x="{float(x):.1f}" y="{float(y):.1f}"/>'
        for each, (to, x, y, _) in zip(points, markers, strict=True)
    )
    group = svg[start:end]
    first, last = group.index("<use "), group.rindex("/>") + 2
    inside = f'<g style="{style}">{links}</g>'
    return svg[:start] + group[:first] + inside + group[last:] + svg[end:]
