"""netbench: what moving bytes over a network costs on Linux hosts, measured so that the answer can
be trusted.

`netbench.load(path)` reads a result folder, `netbench.transfer("send=sendfile", ...)` measures one
cell; see netbench.api. Names are looked up on first use, so that importing the package costs
nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netbench.api import Results as Results
    from netbench.api import load as load
    from netbench.api import transfer as transfer

__version__ = "0.1.0"
_API = (
    "Results",
    "load",
    "transfer",
)  # a name that is not here never imports the API (`from netbench import plan` asks for it first)


def __getattr__(name: str) -> object:
    """A name of netbench.api. Errors: AttributeError."""
    if name in _API:
        return getattr(import_module("netbench.api"), name)
    raise AttributeError(f"module 'netbench' has no attribute {name!r}")
