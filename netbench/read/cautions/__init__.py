"""Cautions: what a reader must know before trusting a number. One function each; `rule.py` finds
them, docs/adding-a-caution.md adds one.
"""
