"""Hosts over SSH.

`channel.py` is a host, reached when it is first used; `process.py` a program on it;
`connection.py` an authenticated connection over a `wire.py`; `authentication.py` offers keys,
`known_hosts.py` enforces the host's key, `destination.py` is what OpenSSH's configuration says.
Only `connection.py` and `authentication.py` import fabric or paramiko.
"""
