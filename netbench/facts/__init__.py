"""Facts: what is read from a host because a result depends on it.

`registry.py` declares every fact in one row, `text`, `cpu`, `network`, `storage` and `system` turn
what was read into a fact, `comparison.py` compares two hosts or boots, `entry.py` reads an entry of
facts.json. `netbench.hosts.probe` reads facts from a host.
"""
