"""`python -m tools.docs OUT [SOURCE]`: build the site strictly; every warning is an error.

Sphinx itself warns of a link to a page, heading or file that does not exist, and of a page that
no table of contents lists. Nothing is fetched.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from sphinx.cmd.build import build_main

DOCS = Path(__file__).resolve().parents[2] / "docs"


def build(out: Path, source: Path = DOCS) -> int:
    """Build the pages of `source` with the project's configuration into `out`; Sphinx's status."""
    with tempfile.TemporaryDirectory(prefix="netbench-docs-") as doctrees:
        strict = ["--fail-on-warning", "--keep-going", "--nitpicky", "--quiet"]
        where = ["--conf-dir", str(DOCS), "--doctree-dir", doctrees]
        return build_main([*strict, *where, "--builder", "html", str(source), str(out)])


if __name__ == "__main__":
    sys.exit(build(*map(Path, sys.argv[1:3])))
