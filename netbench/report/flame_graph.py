"""Flame graphs (Brendan Gregg's) as SVG files that need nothing else: a box a function, as wide as
what it and what it called cost, above its caller. A click on a box makes it as wide as the drawing,
one on the title shows all again; the script that does it is within the file.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape

from netbench.analysis.layers import layer_of
from netbench.profile_files import KERNEL_MARK

WIDTH, ROW, TOP, BOTTOM, SIDE = 1200, 17, 56, 30, 10
LETTER = 6.6  # width of a letter of the font, at most
LEAST = 0.3  # boxes that are narrower are left out
LAYERS = {
    "data copy": (214, 94, 60),
    "TCP/IP": (72, 131, 186),
    "device": (120, 160, 80),
    "skb": (222, 160, 60),
    "memory": (150, 120, 190),
    "locks": (190, 80, 120),
    "scheduling": (110, 160, 165),
    "other": (196, 190, 180),
    "unmapped": (215, 215, 215),
}
SCRIPT = """
var all = [].slice.call(document.querySelectorAll('#f g')), width = %d, side = %d, letter = %s;
function box(g) { return g.querySelector('rect'); }
function place(x, w) {
  all.forEach(function (g) {
    var r = box(g), gx = +g.dataset.x, gw = +g.dataset.w;
    var parent = gx <= x && gx + gw >= x + w, x1 = side + (gx - x) / w * width, w1 = gw / w * width;
    if (parent) { x1 = side; w1 = width; }
    var shown = parent || (gx >= x - 1e-9 && gx + gw <= x + w + 1e-9);
    g.style.display = shown && w1 > 0.3 ? '' : 'none';
    r.setAttribute('x', x1); r.setAttribute('width', Math.max(w1 - 0.5, 0.1));
    var t = g.querySelector('text'), n = Math.floor((w1 - 6) / letter), name = g.dataset.n;
    t.setAttribute('x', x1 + 3);
    t.textContent = n < 3 ? '' : name.length <= n ? name : name.slice(0, n - 2) + '..';
  });
}
document.getElementById('f').addEventListener('click', function (e) {
  var g = e.target.closest('g[data-x]'); if (g) place(+g.dataset.x, +g.dataset.w);
});
document.getElementById('t').addEventListener('click', function () { place(0, 1); });
"""
STYLE = """
text { font: 11px Verdana, 'DejaVu Sans', sans-serif; fill: #1f2933; pointer-events: none; }
#t { font-size: 15px; pointer-events: all; cursor: pointer; } .s { fill: #616e7c; }
#f g:hover rect { stroke: #1f2933; stroke-width: 1; cursor: pointer; }
"""

Costs = Mapping[tuple[str, ...], float]


@dataclass
class _Box:
    """A function in its place: its cost with what it calls, and the cost in the other profile."""

    cost: float = 0.0
    other: float = 0.0
    below: dict[str, _Box] = field(default_factory=dict)

    def add(self, stack: tuple[str, ...], cost: float, other: float) -> None:
        """Add a stack below this box."""
        box = self
        box.cost, box.other = box.cost + cost, box.other + other
        for name in stack:
            box = box.below.setdefault(name, _Box())
            box.cost, box.other = box.cost + cost, box.other + other


def flame_graph(stacks: Costs, title: str, unit: str) -> str:
    """The SVG of one profile. Boxes of the kernel are coloured by layer; `unit` of the costs, such
    as `ticks per GiB`.
    """
    root = _Box()
    for stack, cost in sorted(stacks.items()):
        root.add(stack, cost, 0.0)
    return _drawn(root, title, f"{root.cost:,.0f} {unit}", unit, None)


def differential(before: Costs, after: Costs, title: str, unit: str) -> str:
    """The SVG of `after`, in red where a function costs more than before, in blue where less."""
    root = _Box()
    for stack in sorted({*before, *after}):
        root.add(stack, after.get(stack, 0.0), before.get(stack, 0.0))
    told = f"{root.cost:,.0f} {unit}, {root.other:,.0f} before"
    most = max((abs(box.cost - box.other) for box in _every(root)), default=0.0)
    return _drawn(root, title, told, unit, most)


def _every(box: _Box) -> Iterator[_Box]:
    for child in box.below.values():
        yield child
        yield from _every(child)


def _drawn(root: _Box, title: str, told: str, unit: str, most: float | None) -> str:
    boxes = list(_placed(root, 0.0, 1.0, 0)) if root.cost else []
    deepest = max((depth for *_, depth in boxes), default=0)
    height = TOP + (deepest + 1) * ROW + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        f' width="{WIDTH}" height="{height}">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text id="t" x="{SIDE}" y="22">{escape(title)}</text>',
        f'<text class="s" x="{SIDE}" y="40">{escape(told)}</text>',
        _legend(most, height),
        '<g id="f">',
    ]
    inner = WIDTH - 2 * SIDE
    for name, box, x, w, depth in boxes:
        if w * inner >= LEAST:
            parts.append(
                _box(name, box, x, w, height - BOTTOM - (depth + 1) * ROW, most, unit, root)
            )
    script = SCRIPT % (inner, SIDE, LETTER)
    return "\n".join([*parts, "</g>", f"<script><![CDATA[{script}]]></script>", "</svg>", ""])


def _placed(
    box: _Box, x: float, width: float, depth: int
) -> Iterator[tuple[str, _Box, float, float, int]]:
    """Every box below one, as (name, box, begin, width, depth): shares of the drawing's width."""
    for name in sorted(box.below):
        child = box.below[name]
        w = width * child.cost / box.cost if box.cost else 0.0
        if not w:
            continue
        yield name, child, x, w, depth
        yield from _placed(child, x, w, depth + 1)
        x += w


def _box(
    frame: str,
    box: _Box,
    x: float,
    w: float,
    y: int,
    most: float | None,
    unit: str,
    root: _Box,
) -> str:
    name, inner = frame.removesuffix(KERNEL_MARK), WIDTH - 2 * SIDE
    told = f"{name}: {box.cost:,.1f} {unit}, {box.cost / root.cost:.1%}"
    if most is not None:
        told += f"; {box.other:,.1f} before ({box.cost - box.other:+,.1f})"
    letters = int((w * inner - 6) / LETTER)
    shown = "" if letters < 3 else name if len(name) <= letters else f"{name[: letters - 2]}.."
    colour = _colour(frame) if most is None else _change_colour(box, most)
    left, wide = SIDE + x * inner, max(w * inner - 0.5, 0.1)
    return (
        f'<g data-x="{x:.7g}" data-w="{w:.7g}" data-n="{escape(name)}">'
        f"<title>{escape(told)}</title>"
        f'<rect x="{left:.2f}" y="{y}" width="{wide:.2f}" height="{ROW - 1}" rx="1"'
        f' fill="{colour}"/>'
        f'<text x="{left + 3:.2f}" y="{y + 12}">{escape(shown)}</text></g>'
    )


def layer_colour(layer: str) -> str:
    """The colour of a layer in drawings and legends."""
    return _hex(*(value + (255 - value) * 0.3 for value in LAYERS[layer]))


def _colour(frame: str) -> str:
    """The colour of a frame's layer, lighter or darker by its name, so that neighbours differ."""
    base = LAYERS.get(layer_of(frame), LAYERS["unmapped"])
    lighter = 0.22 + (zlib.crc32(frame.encode()) % 100) / 400
    return _hex(*(value + (255 - value) * lighter for value in base))


def _change_colour(box: _Box, most: float) -> str:
    share = (box.cost - box.other) / most if most else 0.0
    pale = 245 - 185 * min(abs(share) ** 0.6, 1.0)
    return _hex(245, pale, pale) if share > 0 else _hex(pale, pale, 245)


def _hex(*parts: float) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in parts)


def _legend(most: float | None, height: int) -> str:
    """What the colours mean, in the last line."""
    words = (
        [(name, layer_colour(name)) for name in LAYERS]
        if most is None
        else [
            ("costs more than before", _hex(245, 60, 60)),
            ("less; as wide as what it costs now: what is gone has no box", _hex(60, 60, 245)),
        ]
    )
    parts, x = [], float(SIDE)
    for name, colour in words:
        parts.append(
            f'<rect x="{x:.0f}" y="{height - 20}" width="11" height="11" fill="{colour}"/>'
            f'<text class="s" x="{x + 16:.0f}" y="{height - 10}">{escape(name)}</text>'
        )
        x += 16 + 7 * len(name) + 18
    return "".join(parts)
