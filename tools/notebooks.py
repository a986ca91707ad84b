"""Run the notebooks and store what they show: `python -m tools.notebooks`, where they or what they
call have changed. tests/unit/report/test_results.py compares.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def main() -> int:
    """Each notebook, from a kernel of its own."""
    for file in sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = nbformat.read(file, as_version=4)
        metadata = notebook.metadata
        where = {"metadata": {"path": str(NOTEBOOKS)}}
        NotebookClient(notebook, resources=where, record_timing=False).execute()
        notebook.metadata = metadata | {"language_info": {"name": "python"}}
        nbformat.write(notebook, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
