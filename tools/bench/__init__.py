"""`make bench`: netbench beside budgets and peers of the same run, to docs/performance.md."""
