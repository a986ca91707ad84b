"""Cautions: what a reader must know before trusting a number. One file each; `catalogue.py` finds
them, docs/adding-a-caution.md adds one.
"""
