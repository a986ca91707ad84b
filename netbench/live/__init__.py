"""A campaign while it runs, for who watches it: by `watch`, which only reads the result folder, and
by `run` from what it knows anyway.
"""
