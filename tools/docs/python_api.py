"""Reference of the Python API, from signatures and docstrings."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator

import netbench
from netbench import api, results
from netbench.report.plots import Plots
from tools.docs.markdown import block, join, prose

API = api.__name__


def _functions() -> list[str]:
    """The functions of netbench.api, in its order."""
    own = (name for name, each in vars(api).items() if getattr(each, "__module__", "") == API)
    return [name for name in own if not name.startswith("_")]


def _docstring(thing: object) -> str:
    paragraphs = (inspect.getdoc(thing) or "").split("\n\n")
    return join(*(prose(paragraph) for paragraph in paragraphs))


def _signature(name: str, function: object) -> str:
    text = str(inspect.signature(function)).replace("'", "")  # type: ignore[arg-type]
    return block(textwrap.fill(f"{name}{text}", 90, subsequent_indent="    "), "python")


def _members(kind: type) -> Iterator[str]:
    """What a class defines: properties and methods whose names do not begin with _."""
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        function = getattr(member, "fget", None) or getattr(member, "func", None)
        if function:
            returns = str(function.__annotations__.get("return", "")).replace("'", "")
            signature = block(f"{name}: {returns}", "python")
        else:
            function, signature = member, _signature(name, member)
        yield join(f"### {kind.__name__}.{name}", signature, _docstring(function))


def reference() -> str:
    """`netbench`, `netbench.api`, and the classes of a loaded result."""
    top = join("## netbench", _docstring(netbench))
    functions = (
        join(f"### {name}", _signature(name, getattr(api, name)), _docstring(getattr(api, name)))
        for name in _functions()
    )
    classes = (
        join(f"## {kind.__name__}", _docstring(kind), *_members(kind))
        for kind in (results.Results, Plots)
    )
    return join(top, "## netbench.api", _docstring(api), *functions, *classes)
