"""What moving bytes over a network costs on Linux hosts, measured so that it can be trusted.

netbench.run("tso.yaml")              runs a campaign: a file, YAML text or a mapping
netbench.load("latest")               reads a result, by its folder or name
netbench.transfer("rcv", streams=4)   moves data to a host, without a campaign
netbench.compare("tso~1", "tso")      compares results, or with factor="tso" levels of one

The first three give Results: frames (.runs .cells .facts .samples), .compare("tso"),
.plot.means(), .text(), .html(). See help(netbench.Results) and help(netbench.api).
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
    from netbench.api import compare as compare
    from netbench.api import load as load
    from netbench.api import run as run
    from netbench.api import transfer as transfer
    from netbench.results import Results as Results

__version__ = "0.2.0"
# Where each name is. One that is not here never imports the API: `from netbench import plan` asks
# for it first.
_API = dict.fromkeys(("compare", "load", "transfer"), "api") | {"Results": "results", "run": ""}


def __dir__() -> list[str]:
    """The API, as a notebook's completion shows it."""
    return sorted([*_API, "__version__"])


def __getattr__(name: str) -> object:
    """A name of the API; the room `run` is called as that function. Errors: AttributeError."""
    if name not in _API:
        raise AttributeError(f"module 'netbench' has no attribute {name!r}")
    if not _API[name]:
        return import_module(f"netbench.{name}")
    return getattr(import_module(f"netbench.{_API[name]}"), name)
