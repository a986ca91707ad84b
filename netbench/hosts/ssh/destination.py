"""What an OpenSSH destination means on this machine, as `ssh -G` resolves it: aliases, Include,
Match, ports, jumps, keys.

Source: ssh_config(5). `ssh -G` prints keywords in lower case, one a line, tokens not expanded.
"""

from __future__ import annotations

import getpass
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from netbench.base.errors import APT_INSTALL, HostError

FAMILIES = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}
MOST_JUMPS = 8
RESOLVE_SECONDS = 20.0
# ProxyCommand and `Match exec` pass host and user to a shell of this machine, so they must not hold
# characters that a shell interprets.
_UNSAFE = re.compile(r"[\x00-\x20\x7f'\"`$\\;&<>|(){}]")
_IN_BRACKETS = re.compile(
    r"(?:ssh://)?(?P<user>[^@]*@)?\[(?P<host>[\da-fA-F:.]+(?:%[\w.-]+)?)\](?::(?P<port>[0-9]{1,5}))?"
)
_TOKEN = re.compile(r"%(.?)")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")


class Destination(NamedTuple):
    """Where to connect and how. Times in seconds, None: not set; files may not exist."""

    hostname: str
    port: int
    user: str
    proxy: str = ""  # the command, its tokens expanded; for jump hosts it is `ssh -W`
    identities: tuple[Path, ...] = ()
    certificates: tuple[Path, ...] = ()
    identities_only: bool = False
    agent: str = ""  # the agent's socket, "": none
    known_hosts: tuple[Path, ...] = ()  # the user's first
    key_alias: str = ""
    bind: str = ""
    family: int = socket.AF_UNSPEC
    connect_timeout: float | None = None
    keepalive: int | None = None

    def __str__(self) -> str:
        return f"{self.user}@{self.hostname}:{self.port}"


def check_destination(destination: str) -> None:
    """Refuse a destination that is an option to `ssh` or a command. Errors: HostError."""
    bare = destination.removeprefix("ssh://")
    user, _, host = bare.rpartition("@")
    encoded = bare is not destination and "%" in bare  # a URI may hide any character
    if (
        not host
        or host.startswith("-")
        or user.startswith("-")
        or encoded
        or _UNSAFE.search(destination)
    ):
        raise HostError(
            f"{destination!r} is not an SSH destination; write [user@]host,"
            " ssh://[user@]host[:port]"
            " or an alias"
        )


def _as_words(destination: str) -> list[str]:
    """A destination as arguments of ssh, which takes no IPv6 address in a URI (misc.c)."""
    parts = _IN_BRACKETS.fullmatch(destination)
    if not parts:
        return ["--", destination]
    port = ["-p", parts["port"]] if parts["port"] else []
    return [*port, "--", f"{parts['user'] or ''}{parts['host']}"]


def _ask_ssh(destination: str, config: Path | None) -> dict[str, list[str]]:
    """`ssh -G`: every keyword with its values."""
    argv = ["ssh", *(["-F", str(config)] if config else []), "-G", *_as_words(destination)]
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=RESOLVE_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            errors="replace",
        )
    except FileNotFoundError as error:
        raise HostError(
            f"the program `ssh` is missing on this machine; on Debian: {APT_INSTALL} openssh-client"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise HostError(
            f"`ssh -G {destination}` took longer than {RESOLVE_SECONDS:.0f} s; check `Match exec`"
            " in the SSH configuration"
        ) from error
    if done.returncode:
        words = [line for line in done.stderr.splitlines() if "seudo-terminal" not in line]
        raise HostError(
            f"ssh cannot resolve {destination!r}: {'; '.join(words)}; correct the SSH configuration"
        )
    values: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        keyword, _, value = line.partition(" ")
        values.setdefault(keyword, []).append(value)
    return values


def _expand(text: str, tokens: Mapping[str, str]) -> str:
    def token(match: re.Match[str]) -> str:
        if match[1] not in tokens:
            raise HostError(
                f"the SSH configuration has {text!r}; netbench does not support the token"
                f" %{match[1]}: write its value"
            )
        return tokens[match[1]]

    return _TOKEN.sub(token, text)


def _path(text: str, tokens: Mapping[str, str]) -> Path:
    plain = _VARIABLE.sub(lambda match: os.environ.get(match[1], ""), _expand(text, tokens))
    return Path(os.path.expanduser(plain))


def _files(text: str) -> list[str]:
    """`ssh -G` prints file names in one line without quotes: a new one begins at `/` or `~`."""
    return [name for name in re.split(r" (?=[/~])", text) if name and name != "none"]


def _agent(setting: str, tokens: Mapping[str, str]) -> str:
    if setting == "none":
        return ""
    if setting in ("", "SSH_AUTH_SOCK"):
        return os.environ.get("SSH_AUTH_SOCK", "")
    if setting.startswith("$") and not setting.startswith("${"):
        return os.environ.get(setting[1:], "")
    return str(_path(setting, tokens))


def _seconds(value: str) -> int | None:
    return int(value) if value.isdigit() and int(value) else None


def _through(jumps: str, hostname: str, port: str, config: Path | None) -> str:
    """The command that reaches a host through those of ProxyJump, as ssh itself would run it, but
    that it asks nothing and refuses unknown keys; "" without jump hosts. Errors: HostError where
    these lead in a circle, for which ssh would start one ssh after another without end.
    """
    before, _, last = jumps.rpartition(",")
    if not last:
        return ""
    first, hops = jumps.partition(",")[0], 0
    while first != "none":
        if (hops := hops + 1) > MOST_JUMPS:
            raise HostError(
                f"the jump hosts of {hostname} lead in a circle, or are more than {MOST_JUMPS};"
                " correct ProxyJump in the SSH configuration"
            )
        asked, first = first if first.startswith("ssh://") else f"ssh://{first}", "none"
        with suppress(HostError):  # what it cannot resolve, ssh says when it connects
            first = _ask_ssh(asked, config).get("proxyjump", ["none"])[0].partition(",")[0]
    argv = ["ssh", *(["-F", str(config)] if config else []), *(["-J", before] if before else [])]
    argv += ["-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"]
    # a URI is the only form of a destination that holds a port
    target = last if last.startswith("ssh://") else f"ssh://{last}"
    return shlex.join([*argv, "-W", f"[{hostname}]:{port}", *_as_words(target)])


def resolve(destination: str, config: Path | None = None) -> Destination:
    """What a destination means; `config`: instead of the user's and system's. Errors: HostError."""
    check_destination(destination)
    values = _ask_ssh(destination, config)

    def one(keyword: str, default: str = "") -> str:
        value = values.get(keyword, [default])[0]
        return default if value == "none" else value

    for keyword, name in (
        ("proxyusefdpass", "ProxyUseFdpass"),
        ("revokedhostkeys", "RevokedHostKeys"),
    ):
        if one(keyword) not in ("", "no"):
            raise HostError(
                f"the SSH configuration of {destination} has {name}, which netbench does not"
                " support; remove it, and name revoked keys by @revoked in known_hosts"
            )
    hostname, user, alias = one("hostname"), one("user", getpass.getuser()), one("hostkeyalias")
    check_destination(f"{user.replace(chr(92), '')}@{hostname}")
    here = socket.gethostname()
    tokens = {
        "%": "%",
        "h": hostname,
        "p": one("port", "22"),
        "r": user,
        "n": one("host", destination),
        "k": alias or hostname,
        "d": str(Path.home()),
        "i": str(os.getuid()),
        "u": getpass.getuser(),
        "l": here,
        "L": here.split(".")[0],
    }

    def paths(names: Sequence[str]) -> tuple[Path, ...]:
        return tuple(_path(name, tokens) for name in names if name != "none")

    known = [
        name
        for keyword in ("userknownhostsfile", "globalknownhostsfile")
        for name in _files(one(keyword))
    ]
    return Destination(
        hostname=hostname,
        port=int(tokens["p"]),
        user=user,
        proxy=_through(one("proxyjump"), hostname, tokens["p"], config)
        or _expand(one("proxycommand"), tokens),
        identities=paths(values.get("identityfile", [])),
        certificates=paths(values.get("certificatefile", [])),
        identities_only=one("identitiesonly") == "yes",
        agent=_agent(values.get("identityagent", [""])[0], tokens),
        known_hosts=paths(known),
        key_alias=alias.lower(),
        bind=one("bindaddress"),
        family=FAMILIES.get(one("addressfamily"), socket.AF_UNSPEC),
        connect_timeout=_seconds(one("connecttimeout")),
        keepalive=_seconds(one("serveraliveinterval")),
    )
