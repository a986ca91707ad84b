"""Analysis: raw records -> metrics -> intervals, comparisons and cautions. Pure functions;
`load.py` alone reads files.

This module, `metrics`, `intervals` and `stopping` need numpy and scipy.special only, since the
conductor uses them during a campaign.
"""
