"""`make bench`: netbench measured against budgets and against peers in the same run; writes
docs/performance.md.
"""
