"""Settings of hosts and interfaces: one small file each, which named.py finds in this folder."""
