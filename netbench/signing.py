"""Signatures of what a result folder lets a controller do: an HMAC by a key of the account.

The key is in the account's state folder, so a file of a result that another account has changed,
or that came from elsewhere, has no valid signature. It is made when it is first needed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from netbench.errors import PlaceError, StoreError
from netbench.ownership import refuse_foreign

SIZE = 32  # bytes of a key
_SIGNATURE = re.compile(rb',"mac":"([1-9][0-9]{0,17}):([0-9a-f]{64})"\}\n\Z')
UNSIGNED = "is not signed"
FOREIGN = "has no valid signature by this account's key"
REPEATED = "is a copy of an earlier line"
MISPLACED = "is out of place: a line before it was changed or is missing"
LOST = "has lost {} at its end, which this account has signed"
_RESULT = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Key:
    """A secret that signs."""

    secret: bytes

    @property
    def name(self) -> str:
        """Which key it is, without saying what it is: 8 hexadecimal digits."""
        return hashlib.sha256(b"netbench key\0" + self.secret).hexdigest()[:8]

    def sign(self, *parts: bytes) -> str:
        """HMAC-SHA256 over parts and their lengths, in hexadecimal digits."""
        message = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return hmac.new(self.secret, message, hashlib.sha256).hexdigest()


def key_file() -> Path:
    """Where this account's key is: below $XDG_STATE_HOME, where that is an absolute path, or
    ~/.local/state.
    """
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".local" / "state") / "netbench" / "key"


def read_key() -> Key | None:
    """This account's key; None where it has none yet. Errors: StoreError when others may know
    it.
    """
    try:
        file = key_file()
        refuse_foreign(file.parent)
        refuse_foreign(file, private=True)
        secret = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError, RuntimeError):  # RuntimeError: no home folder
        return None
    except OSError as error:
        raise StoreError(
            f"cannot read {file}, the key that signs results: {error.strerror}; make it readable"
        ) from error
    if len(secret) != SIZE:
        raise StoreError(f"{file} is not a key of {SIZE} bytes; remove it, and a new one is made")
    return Key(secret)


def own_key() -> Key:
    """This account's key, made where it has none. Errors: StoreError; PlaceError when it cannot be
    made.
    """
    if key := read_key():
        return key
    try:
        file = key_file()
        _make_folders(file.parent)
        with suppress(FileExistsError):  # another process was faster
            _make(file)
    except (OSError, RuntimeError) as error:
        raise PlaceError(
            f"cannot make the key that signs results: {error}; set XDG_STATE_HOME to a folder of"
            " your own"
        ) from error
    if key := read_key():
        return key
    raise PlaceError(f"{file} is gone again; set XDG_STATE_HOME to a folder of your own")


def _make_folders(folder: Path) -> None:
    if not folder.is_dir():
        _make_folders(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)


def _make(file: Path) -> None:
    """A new key: whole, or not there. Errors: FileExistsError; OSError."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as raw:
            raw.write(secrets.token_bytes(SIZE))
            raw.flush()
            os.fsync(raw.fileno())
        os.link(draft, file)  # fails where a key is there
    finally:
        draft.unlink()


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Doubt:
    """A line of the journal without a valid signature (`where`: `FILE:LINE`), or its end.

    hides_others: lines that this account has written are no longer before it.
    """

    where: str
    why: str
    hides_others: bool = False
    is_of_a_line: bool = True

    def __str__(self) -> str:
        return f"{self.where} {self.why}; it is not acted on"


@dataclass(frozen=True)
class LineSigner:
    """Signs the lines of one result's journal and knows them again, each at its place.

    `key`: None where this account has none: lines stay unsigned, and none is valid. `result`: the
    result's id, so that no line is valid in another result.
    """

    key: Key | None
    result: str

    def sign(self, line: bytes, place: int) -> bytes:
        """A line, a JSON object, with its signature as its last key. `place` counts from 1."""
        if self.key is None:
            return line
        mac = self._mac(self.key, line, place)
        return line.removesuffix(b"}\n") + f',"mac":"{place}:{mac}"}}\n'.encode()

    def examine(self, lines: Iterable[bytes]) -> Iterator[str]:
        """Of each line why it is not valid; "" where it is."""
        place = 1
        for line in lines:
            why = self._why_not(line, place)
            place += not why
            yield why

    def doubts(self, file: Path, lines: Sequence[tuple[str, bytes]]) -> list[Doubt]:
        """What of a file's lines, each with its `FILE:LINE`, is not as the account has signed
        it.
        """
        reasons = list(self.examine(line for _, line in lines))
        doubts = [
            Doubt(where, why, why == MISPLACED)
            for (where, _), why in zip(lines, reasons, strict=True)
            if why
        ]
        lost = self._count_signed() - reasons.count("")
        if lost > 0 and not any(doubt.hides_others for doubt in doubts):
            what = LOST.format("1 line" if lost == 1 else f"{lost} lines")
            doubts.append(Doubt(str(file), what, True, False))
        return doubts

    def _count_signed(self) -> int:
        """How many lines of this result the account has signed, as far as it remembers."""
        try:
            refuse_foreign(self._count_file)
            return int(self._count_file.read_bytes())
        except (OSError, ValueError, RuntimeError, StoreError):
            return 0

    def remember(self, count: int) -> None:
        """Remember how many lines were signed, beside the key: it is not forced to the disk, so
        after a power failure it may be less. Where there is no room for it, nothing is remembered.
        """
        if self.key is None or not _RESULT.fullmatch(self.result):
            return
        with suppress(OSError, RuntimeError):
            _make_folders(self._count_file.parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._count_file, flags, 0o600)
            try:
                os.pwrite(descriptor, b"%012d\n" % count, 0)
            finally:
                os.close(descriptor)

    @property
    def _count_file(self) -> Path:
        known = _RESULT.fullmatch(self.result)
        return key_file().parent / "lines" / (self.result if known else "none")

    def _why_not(self, line: bytes, place: int) -> str:
        """Why a line is not the one that was signed at this place."""
        match = _SIGNATURE.search(line)
        if match is None or self.key is None:
            return FOREIGN if match else UNSIGNED
        signed = int(match[1])
        if not hmac.compare_digest(match[2].decode(), self._mac(self.key, plain(line), signed)):
            return FOREIGN
        if signed < place:
            return REPEATED
        return MISPLACED if signed > place else ""

    def _mac(self, key: Key, line: bytes, place: int) -> str:
        return key.sign(b"line", self.result.encode(), b"%d" % place, line)


def plain(line: bytes) -> bytes:
    """A line without its signature."""
    return _SIGNATURE.sub(b"}\n", line)
