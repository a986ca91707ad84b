"""A host's shell: one constant line starts it, everything else (scripts, paths, arguments, files)
goes over its input.

The line holds no value and prints a mark first, so that output of a login shell before it (a
banner, an `echo` in .bashrc) is skipped. It then reads a script of known length one byte at a time,
so that the bytes after it are left for the script. Scripts are constant too. A script that needs
bytes asks for them first, and nothing is sent before, since `head` may read more than its count. A
host needs sh, dd, head, cat and the programs that a script names; no sftp.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from netbench.base.errors import HostError, RootRefused
from netbench.hosts.host_channel import Process, Result

LINE = (
    'exec sh -c \'echo "netbench:shell $(uname -m)"; IFS= read -r n && eval "$(dd bs=1 count="$n"'
    " 2>/dev/null)\"'"
)
MARK = b"netbench:shell "
WORD = "netbench:"
NOISE_LIMIT = 1 << 20  # bytes before the mark
OUTPUT_LIMIT = 16 << 20  # of a line, and of a program that is run to its end
SENT_AT_ONCE = 1 << 18
REMARKS = 20  # lines that are kept of what a host prints

# A value may hold any byte but NUL; the dot keeps the newlines at its end from the shell.
_VALUE = """\
value() {
  IFS= read -r size
  value=$(dd bs=1 count="$size" 2>/dev/null; echo .)
  value=${value%.}
}
"""
_RUN = f"""{_VALUE}
set --
IFS= read -r count
while [ "$count" -gt 0 ]; do
  value
  set -- "$@" "$value"
  count=$((count - 1))
done
case $1 in
  */*) [ -f "$1" ] && [ -x "$1" ];;
  *) command -v "$1" >/dev/null 2>&1;;
esac || {{ echo netbench:missing; exit 127; }}
echo netbench:ready
IFS= read -r go
exec "$@"
"""
_PUT = f"""{_VALUE}
umask 077
value
target=$value
IFS=' ' read -r bytes mode
temp=$target.netbench.$$
trap 'rm -f "$temp"' EXIT
(true > "$temp") || exit 1
echo netbench:send
head -c "$bytes" | {{ cat > "$temp" || cat > /dev/null; }}
[ "$(($(wc -c < "$temp")))" = "$bytes" ] && chmod "$mode" "$temp" &&
  mv -f "$temp" "$target" && echo netbench:done
"""


class Session(Process, Protocol):
    """A process on a host, whose input can end before its output does."""

    def write_end(self) -> None:
        """Tell it that nothing more will be written. Errors: OSError."""

    def errors(self) -> str:
        """Its standard error, or the end of it."""


class Shell:
    """A host's shell under LINE, past its banner. `machine`: what `uname -m` says."""

    def __init__(self, process: Session, host: str, seconds: float) -> None:
        self.host = host
        self.process = process
        self._buffer = bytearray()
        self._deadline = time.monotonic() + seconds
        self.remarks: list[str] = []
        self.machine = self._pass_banner()

    def allow(self, seconds: float) -> None:
        """Set the deadline of what follows, in seconds from now."""
        self._deadline = time.monotonic() + seconds

    def _fill(self) -> bool:
        """Read more; False at the end. Errors: HostError, also when the time is up while data still
        arrives, or more is there than fits.
        """
        left = self._deadline - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            data = self.process.read(left)
        except TimeoutError as error:
            raise self.failure(
                "the login shell did not answer in time; check its login scripts and the host's"
                " load"
            ) from error
        except OSError as error:
            raise self._lost(error) from error
        self._buffer += data
        if len(self._buffer) > OUTPUT_LIMIT:
            raise self.failure(f"it prints more than {OUTPUT_LIMIT >> 20} MiB; look at that host")
        return bool(data)

    def _lost(self, error: OSError) -> HostError:
        return self.failure(f"{error.strerror or error}; check that the host is up and reachable")

    def _words(self) -> str:
        output = "; ".join([*self.remarks, *self.process.complaint().splitlines()])
        return f"; its output: {output}" if output else ""

    def _pass_banner(self) -> str:
        while (at := self._buffer.find(MARK)) < 0 or b"\n" not in self._buffer[at:]:
            if len(self._buffer) > NOISE_LIMIT or not self._fill():
                self.remarks = self._buffer[-200:].decode("utf-8", "replace").split("\n")[-3:]
                raise self.failure(
                    "the login shell ran no command; use an account whose shell can run `sh` and"
                    " that has no forced command"
                )
        del self._buffer[: at + len(MARK)]
        return self._take_line()

    def _take_line(self) -> str:
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer[:] = rest
        return line.decode("utf-8", "replace").strip()

    def tell(self, data: bytes) -> None:
        """Send bytes. Errors: HostError, also when the host takes them too slowly."""
        try:
            for first in range(0, len(data), SENT_AT_ONCE):
                if time.monotonic() > self._deadline:
                    raise TimeoutError("it has not read its input in time")
                self.process.write(data[first : first + SENT_AT_ONCE])
        except OSError as error:
            raise self._lost(error) from error

    def end(self) -> None:
        """Send no more. Errors: HostError."""
        try:
            self.process.write_end()
        except OSError as error:
            raise self._lost(error) from error

    def begin(self, script: str, data: bytes = b"") -> None:
        """Run a script; `data` is what it reads first."""
        text = script.encode()
        self.tell(b"%d\n%b%b" % (len(text), text, data))

    def hear(self) -> list[str]:
        """The words of the next line that a script addresses to netbench; other lines are kept as
        `remarks`. At the end: an empty list.
        """
        while True:
            while b"\n" not in self._buffer:
                if not self._fill():
                    return []
            line = self._take_line()
            if line.startswith(WORD):
                return line.removeprefix(WORD).split(" ")
            if line:
                self.remarks = [*self.remarks, line][-REMARKS:]

    def rest(self) -> bytes:
        """Everything until the end. Errors: HostError."""
        while self._fill():
            pass
        return bytes(self._buffer)

    def finish(self) -> int | None:
        """Close its input and wait; its exit status, or None."""
        return self.process.finish(max(0.1, self._deadline - time.monotonic()))

    def failure(self, what: str) -> HostError:
        """What could not be done, in the host's own words."""
        return HostError(f"{self.host}: {what}{self._words()}")

    def refusal(self, what: str) -> RootRefused:
        """Why the host gives no root, in its own words."""
        return RootRefused(f"{self.host}: {what}{self._words()}")


def _value(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    return b"%d\n%b" % (len(data), data)


def start(shell: Shell, argv: Sequence[str]) -> Session:
    """Start a program in place of the shell: only its output is read then. Errors: HostError."""
    shell.begin(_RUN, b"%d\n%b" % (len(argv), b"".join(map(_value, argv))))
    answer = shell.hear()
    if answer == ["ready"]:
        shell.tell(b"\n")
        return shell.process
    shell.finish()
    if answer == ["missing"]:
        raise shell.failure(f"cannot run {argv[0]}: it was not found on the host; install it there")
    raise shell.failure(f"cannot run {argv[0]}")


def run(shell: Shell, argv: Sequence[str]) -> Result:
    """Run a program to its end, without input. Errors: HostError."""
    process = start(shell, argv)
    shell.end()
    output = shell.rest()
    status = shell.finish()
    if status is None:
        raise shell.failure(f"{argv[0]} did not end")
    return Result(tuple(argv), status, output.decode("utf-8", "replace"), process.errors())


def put(shell: Shell, data: bytes, target: str, mode: int) -> None:
    """Write a file, whole or not at all. Errors: HostError."""
    place = target if target.startswith("/") else f"./{target}"
    shell.begin(_PUT, _value(place) + b"%d %o\n" % (len(data), mode))
    if shell.hear() == ["send"]:
        shell.tell(data)
        if shell.hear() == ["done"]:
            shell.finish()
            return
    shell.finish()
    raise shell.failure(f"cannot write {target}")
