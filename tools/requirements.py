"""Print what pyproject.toml needs to build and run, for `pip install -r` before the package is
built; with the word `dev`, what its development takes too.
"""

import sys
import tomllib
from pathlib import Path

PYPROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
EXTRAS = (PROJECT["optional-dependencies"][extra] for extra in sys.argv[1:])
print("\n".join(sum(EXTRAS, PYPROJECT["build-system"]["requires"] + PROJECT["dependencies"])))
