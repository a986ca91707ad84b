"""Names of a lab, its hosts, and what they are called in the kernel."""

from __future__ import annotations

import re
from collections.abc import Sequence

from netbench.base.errors import LabRefused

DEFAULT_NAME = "lab"
SWITCH = "switch"
HOSTS_MAX = 250  # both links are a /24
# a dash ends the lab's name in a namespace's; nb-NAME is an interface, of at most 15 characters
_LAB = re.compile(r"[A-Za-z0-9_]{1,12}\Z")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")


def interface_name(lab: str) -> str:
    """The only interface of a lab in the root namespace."""
    return f"nb-{lab}"


def namespace_name(lab: str, host: str) -> str:
    """The namespace of a lab's host, or of its switch."""
    return f"nb-{lab}-{host}"


def lab_name(name: str | None) -> str:
    """A lab's name, checked. Errors: LabRefused."""
    if name is None:
        return DEFAULT_NAME
    if not _LAB.match(name):
        raise LabRefused(
            f"expected a lab's name of 1 to 12 letters, digits and underscores, got {name!r}"
        )
    return name


def host_names(hosts: Sequence[str] | int) -> tuple[str, ...]:
    """Names of hosts, checked; h1, h2, ... for a number. Errors: LabRefused."""
    if isinstance(hosts, str):
        raise LabRefused(f"expected a list of hosts or their number, got {hosts!r}")
    count = hosts if isinstance(hosts, int) else len(hosts)
    if not 1 <= count <= HOSTS_MAX:
        raise LabRefused(f"expected 1 to {HOSTS_MAX} hosts in a lab, got {count}")
    if isinstance(hosts, int):
        return tuple(f"h{i}" for i in range(1, hosts + 1))
    for i, name in enumerate(hosts):
        if not _HOST.match(name) or name == SWITCH:
            raise LabRefused(
                "expected a host name of at most 63 letters, digits, dots, dashes and underscores,"
                f" not {SWITCH}, got {name!r}"
            )
        if name in hosts[:i]:
            raise LabRefused(f"expected each host once, got {name} again")
    return tuple(hosts)
