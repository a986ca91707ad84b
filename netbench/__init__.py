"""netbench: what moving bytes over a network costs on Linux hosts, measured so that the answer can
be trusted.

`netbench.load(path)` reads a result folder, `netbench.transfer("send=sendfile", ...)` measures one
cell; see netbench.api. Names are looked up on first use, so that importing the package costs
nothing.
"""
# No `from __future__` here: that is an import, and none may precede _drop_working_directory.

import os
import sys


def _drop_working_directory() -> None:
    """`python -m netbench` puts the working directory first in sys.path. A module there, such as a
    yaml.py beside the campaign, must not run in place of the one that is installed. Neither must
    one of a folder there: setuptools adds a relative path for packages that are installed by
    `pip install -e`.
    """
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        here = ""
    sys.path[:] = [entry for entry in sys.path if os.path.isabs(entry) and entry != here]


def _is_program() -> bool:
    """Whether this process runs netbench, by `-m` or the installed script, and not a notebook."""
    if sys.argv[:1] == ["-m"]:
        words = (word.removeprefix("-m").split(".")[0] for word in sys.orig_argv)
        return "netbench" in words
    return os.path.basename(sys.argv[0] if sys.argv else "") == "netbench"


if _is_program():
    _drop_working_directory()

from importlib import import_module  # noqa: E402
from typing import TYPE_CHECKING  # noqa: E402

if TYPE_CHECKING:
    from netbench.api import Results as Results
    from netbench.api import load as load
    from netbench.api import transfer as transfer

__version__ = "0.1.0"
_API = (
    "Results",
    "load",
    "transfer",
)  # a name that is not here never imports the API: `from netbench import plan` asks for it first


def __dir__() -> list[str]:
    """The API, as a notebook's completion shows it."""
    return sorted([*_API, "__version__"])


def __getattr__(name: str) -> object:
    """A name of netbench.api. Errors: AttributeError."""
    if name in _API:
        return getattr(import_module("netbench.api"), name)
    raise AttributeError(f"module 'netbench' has no attribute {name!r}")
