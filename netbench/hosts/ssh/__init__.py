"""Hosts over SSH.

`channel.py` is a host, reached when it is first used; `process.py` a program on it; `link.py` an
authenticated connection, which `connector.py` makes over a `wire.py` or a `proxy.py`;
`authentication.py` offers keys, `known_hosts.py` enforces the host's key, `destination.py` is what
OpenSSH's configuration says, `diagnosis.py` words what went wrong. Only `link.py` and
`authentication.py` import fabric or paramiko.
"""
