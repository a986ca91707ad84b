"""Print what pyproject.toml depends on, with its dev extra: for `pip install -r` before the package
is built.
"""

import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
print("\n".join([*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]))
