"""Parts of one campaign joined into one result."""

from netbench.merging.merge import Merged, merge

__all__ = ["Merged", "merge"]
