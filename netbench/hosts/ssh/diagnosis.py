"""Why a connection could not be made, in words, with what to do about it."""

from __future__ import annotations

from typing import Any

from netbench.hosts.ssh.destination import Destination

REASON_LENGTH = 300


def reason(error: Exception) -> str:
    """What the other side answered, or that it did not."""
    return str(getattr(error, "text", "") or error)[:REASON_LENGTH] or "no answer"


def timed_out(transport: Any, seconds: float) -> str:
    """What a connection waited for when its time ran out. `transport` is paramiko's, or None."""
    if transport is None or not transport.remote_version:
        return (
            f"it accepted the connection, but sent no SSH banner within {seconds:.0f} s; is an SSH"
            " server listening on that port, and does it respond?"
        )
    if not transport.initial_kex_done:
        return (
            f"the key exchange did not finish within {seconds:.0f} s; the host or the network may"
            " be overloaded"
        )
    return f"it did not finish authentication within {seconds:.0f} s; the host may be overloaded"


def broken(transport: Any, error: Exception) -> str:
    """Why a connection failed, by how far it had come. `transport` is paramiko's, or None."""
    cause = str(error)[:REASON_LENGTH] or "end of data"
    if transport is None or not transport.remote_version:
        return (
            f"it closed the connection or is not an SSH server ({cause}); is the port right? Does"
            " it limit how many connections are opened at once (MaxStartups)?"
        )
    if not transport.initial_kex_done:
        return f"the key exchange failed ({cause}); do both sides share algorithms?"
    return f"the connection broke during authentication ({cause})"


def rejected(destination: Destination, tried: list[str], methods: tuple[str, ...]) -> str:
    """That the host accepted no key: every key that was tried, and how to add one."""
    attempts = "\n  ".join(tried) or "nothing: there are no keys"
    accepts = (
        f"The host accepts {', '.join(methods)[:REASON_LENGTH]}; netbench sends no passwords. "
        if methods
        else ""
    )
    port = "" if destination.port == 22 else f"-p {destination.port} "
    return (
        f"the host rejected every key that was offered:\n  {attempts}\n{accepts}Add one of your"
        f" keys on the host with\n  ssh-copy-id {port}{destination.user}@{destination.hostname}\n"
        "or name the right key by IdentityFile in the SSH configuration"
    )
