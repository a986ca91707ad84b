"""Colours that drawings and pages share. On a page each is a variable of style.css, which has it
for dark pages too.

Verdicts are told apart by people who see no red or green (Okabe and Ito's blue and vermilion,
darkened for text on white), and have a shape and a word beside the colour.
"""

from __future__ import annotations

INK, DOT, BAND, AXIS, PAPER = "#1f2933", "#5b93b5", "#eef2f5", "#9aa5b1", "#ffffff"
VERDICTS = {
    "better": "#0068a3",
    "worse": "#b3420d",
    "equivalent": "#4a5568",
    "inconclusive": "#7a5f00",
}
MARKERS = {"better": "^", "worse": "v", "equivalent": "s", "inconclusive": "o"}
"""In a drawing by matplotlib."""
SYMBOLS = {"better": "▲", "worse": "▼", "equivalent": "■", "inconclusive": "○"}
ON_DARK, ON_PALE = "#fefefe", "#102a43"
"""Text within fields of a heat map, whose colours are those of any page."""
LAYERS = {
    "data copy": "#e2937d",
    "TCP/IP": "#7fa9cf",
    "device": "#a0bc79",
    "skb": "#e8bc74",
    "memory": "#b6a5cf",
    "locks": "#d285a1",
    "scheduling": "#9abec0",
    "irqs off": "#b6b6d2",
    "other": "#d6d2cb",
    "unmapped": "#e3e3e3",
}
"""Where the cycles go, by analysis/layers.py."""
VARIABLES = {
    INK: "--ink",
    DOT: "--dot",
    BAND: "--band",
    AXIS: "--axis",
    PAPER: "--paper",
    **{colour: f"--{verdict}" for verdict, colour in VERDICTS.items()},
}
