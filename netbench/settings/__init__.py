"""Settings of hosts and interfaces: one small file each, found by looking into this folder
(named.py).
"""
