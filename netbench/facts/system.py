"""Parsers for facts about the kernel's command line and the engine's file. Source: proc(5)."""

from __future__ import annotations

import re

from netbench.facts.fact_text import PRIVATE


def command_line(text: str) -> str:
    """The kernel's command line. Values that may identify a person or grant access are hidden."""
    shown = []
    for word in text.split():
        name, equals, _ = word.partition("=")
        shown.append(f"{name}=(hidden)" if equals and PRIVATE.search(name) else word)
    return " ".join(shown)


KERNEL_CONFIG = (
    "read -r release </proc/sys/kernel/osrelease;"
    ' for file in /proc/config.gz "/boot/config-$release" "/lib/modules/$release/config"; do'
    ' [ -r "$file" ] || continue; case $file in *.gz) gzip -dc "$file" ;; *) cat "$file" ;; esac'
    " | grep -E '^CONFIG_HZ=|CONFIG_IRQ_TIME_ACCOUNTING'; exit; done;"
    " echo no configuration of this kernel is there >&2; exit 1"
)
"""A script that prints some lines of the kernel's configuration, which is longer than an operation
may print.
"""


def irq_time_accounting(text: str) -> str:
    """`on` or `off`, from the lines of KERNEL_CONFIG. Errors: ValueError."""
    if "CONFIG_HZ=" not in text:
        raise ValueError("no CONFIG_HZ in it: it is no configuration of a kernel")
    return "on" if "CONFIG_IRQ_TIME_ACCOUNTING=y" in text else "off"


def engine_hash(text: str) -> str:
    """SHA-256 of the worker's file, from the file's name in /proc/self/maps. Errors: ValueError."""
    match = re.search(r"/worker-([0-9a-f]{64})", text)
    if not match:
        raise ValueError("the name of the worker's file holds no digest")
    return match[1][:16]
