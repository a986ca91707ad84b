"""Known hosts: which key a host must show, from the files that OpenSSH would read (sshd(8),
SSH_KNOWN_HOSTS FILE FORMAT).
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import shlex
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from netbench.base.errors import HostError, HostKeyError

SSH_PORT = 22
_WILD = {*"*?"}


class Line(NamedTuple):
    """One line of a known hosts file; `number` is 1-based, `marker` "" or as `@revoked`."""

    file: Path
    number: int
    marker: str
    names: str
    kind: str
    key: bytes

    @property
    def place(self) -> str:
        return f"{self.file}:{self.number}"


def fingerprint(key: bytes) -> str:
    """As ssh prints it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


def names_match(names: str, name: str) -> bool:
    """Whether a line's names (patterns with commas, or one hashed name) mean a host."""
    if names.startswith("|1|"):
        try:
            salt, digest = map(base64.b64decode, names.removeprefix("|1|").split("|"))
        except (ValueError, binascii.Error):
            return False
        return hmac.compare_digest(hmac.digest(salt, name.encode(), "sha1"), digest)
    matched = False
    for pattern in names.lower().split(","):
        plain = pattern.lstrip("!")
        # fnmatch reads [ ] as a set; in known hosts they are part of the name
        if plain == name or (_WILD & {*plain} and fnmatchcase(name, plain.replace("[", "[[]"))):
            if pattern.startswith("!"):
                return False
            matched = True
    return matched


def _about(names: Collection[str], file: Path) -> list[Line]:
    """The lines of a file that mean a host by one of its names. Errors: HostError."""
    try:
        text = file.read_text("utf-8", "replace")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise HostError(
            f"cannot read the known hosts in {file}: {error.strerror}; check its permissions"
        ) from error
    matching = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        marker = words.pop(0) if words and words[0].startswith("@") else ""
        if len(words) < 3 or not any(names_match(words[0], name) for name in names):
            continue
        with contextlib.suppress(binascii.Error):
            key = base64.b64decode(words[2], validate=True)
            matching.append(Line(file, number, marker, words[0], words[1], key))
    return matching


class KnownHosts:
    """Lines about a host, by the name its key is stored under. `label`: its name in messages."""

    def __init__(
        self, label: str, files: Sequence[Path], hostname: str, port: int, alias: str = ""
    ) -> None:
        plain = hostname.lower()
        self.name = alias or (plain if port == SSH_PORT else f"[{plain}]:{port}")
        self._label = label
        self._accept_into = files[0] if files else Path.home() / ".ssh" / "known_hosts"
        # As in ssh: a key that is known for the host without the port is accepted; a different key
        # without the port is no conflict.
        names = {self.name} if alias else {self.name, plain}
        known = [line for file in files for line in _about(names, file)]
        self._lines = [line for line in known if names_match(line.names, self.name)]
        self._elsewhere = [line for line in known if line not in self._lines]

    def kinds(self) -> list[str]:
        """Key types that are known for the host."""
        return [line.kind for line in self._known()]

    def _known(self) -> list[Line]:
        return [line for line in [*self._lines, *self._elsewhere] if not line.marker]

    def enforce(self, kind: str, key: bytes) -> None:
        """Refuse a key that is not this host's. Errors: HostKeyError."""
        shown = f"{kind} {fingerprint(key)}"
        for line in [*self._lines, *self._elsewhere]:
            if line.marker == "@revoked" and line.key == key:
                raise HostKeyError(
                    f"{self._label}: its key {shown} is revoked by {line.place}; give the host a"
                    " new key, then accept that one"
                )
        if any(line.key == key for line in self._known()):
            return
        if unmarked := [line for line in self._lines if not line.marker]:
            self._refuse_other(unmarked, kind, key)
        self._refuse_unknown(kind, key)

    def _accept(self, kind: str, key: bytes) -> str:
        """The command that accepts exactly this key, also where ssh-keyscan cannot look."""
        line = f"{self.name} {kind} {base64.b64encode(key).decode()}"
        make = (
            ""
            if self._accept_into.parent.is_dir()
            else f"mkdir -p -m 700 {shlex.quote(str(self._accept_into.parent))} && "
        )
        return f"{make}echo {shlex.quote(line)} >> {shlex.quote(str(self._accept_into))}"

    def _refuse_other(self, mine: Sequence[Line], kind: str, key: bytes) -> None:
        same = [line for line in mine if line.kind == kind]
        line = (same or mine)[0]
        forget = f"ssh-keygen -f {shlex.quote(str(line.file))} -R {shlex.quote(self.name)}"
        accept = self._accept(kind, key)
        problem = (
            "its host key has changed"
            if same
            else f"it offers a key of another type ({kind}) than the known one"
        )
        raise HostKeyError(
            f"{self._label}: {problem}: it offers {kind} {fingerprint(key)}, but {line.place} has"
            f" {line.kind} {fingerprint(line.key)}. Either the host was reinstalled, or another"
            f" machine answers. If you know why, remove the old key with\n  {forget}\nand accept"
            f" the new one with\n  {accept}"
        )

    def _refuse_unknown(self, kind: str, key: bytes) -> None:
        short = kind.removeprefix("ssh-").split("-")[0]
        accept = self._accept(kind, key)
        raise HostKeyError(
            f"{self._label}: its host key is not known: {kind} {fingerprint(key)}. Compare it"
            f" with what\n  ssh-keygen -lf /etc/ssh/ssh_host_{short}_key.pub\nprints on the host"
            f" itself; if they are equal, accept it with\n  {accept}"
        )
