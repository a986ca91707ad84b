"""The worker on a host: copied once per content, checked, started; it exits with its channel.

The script below finds a folder from which programs can be run: the user's cache, and where that is
read-only, full or mounted noexec, the folders after it. In a folder that every user can write to,
only a subfolder that the user owns is used. A worker is started only when its SHA-256 is the one
that was sent and when it has just run once.

What the user owns sudo never starts: who may write a program, or a folder above it, may exchange it
after sudo has looked at it (sudoers(5), Digest_Spec). A helper by sudo is a copy in PLACE, where
every part of the path is root's alone. Where sudo allows everything it is put there by the script,
elsewhere by an administrator, who is told the same line.
"""

from __future__ import annotations

import hashlib
import logging
import re
import shlex
from functools import cache
from pathlib import Path
from typing import NamedTuple

from netbench.base.errors import HostError, RootRefused
from netbench.hosts.host_channel import Process
from netbench.hosts.shell import Shell

PACKAGE = Path(__file__).resolve().parent.parent / "engine"
START_SECONDS = 30.0
SEND_SECONDS = 300.0  # a few MB over a slow link
MOVER, HELPER = "mover", "helper"
ANSWERS = 7  # to send, one a folder; to install; and how it ended
_TOOLS = ("sha256sum", "head", "cat", "mkdir", "chmod", "mv", "rm", "id", "ls")
PLACE = "/usr/local/libexec/netbench"
_ACCOUNT = re.compile(r"[a-z_][a-z0-9_-]*")  # no other word of sudoers(5), no other file's name
# Of PLACE, or a worker there: no other path that a host names is to be made root's.
_PART = re.compile("/(usr(/local(/libexec(/netbench(/worker-[0-9a-f]{64})?)?)?)?)?")
# Root copies the worker $1, and looks at its copy: only that of SHA-256 $2 gets a name that sudo
# starts. Until then nobody reads it: the user may have put a link to another file there. Its name
# is this shell's own: another account's copy is never looked at in place of it, or named for it.
_INSTALL = (
    f'd={PLACE}; f=$d/new-$$; ulimit -f 99999; [ -f "$1" ] && install -D -o root -g root -m 700'
    ' "$1" $f && echo "$2  $f" | sha256sum -c && chmod 755 $f && mv $f $d/worker-$2 && find $d'
    r" -name worker-\* ! -name worker-$2 -mtime +30 -exec rm -f {} + || { rm -f $f; false; }"
)

# It reads one line: SHA-256 and size of the worker, what it is to be (`mover`, `helper`), and the
# user that a mover becomes, if any.
_SCRIPT = (
    """\
mask=$(umask)
umask 077
IFS=' ' read -r hash size role as
user=$(id -u)
name=worker-$hash
for tool in TOOLS; do
  command -v $tool >/dev/null 2>&1 || { echo "netbench:tool $tool"; exit 1; }
done

set --
[ -z "$XDG_CACHE_HOME$HOME" ] || set -- "${XDG_CACHE_HOME:-$HOME/.cache}/netbench"
[ -z "$XDG_RUNTIME_DIR" ] || set -- "$@" "$XDG_RUNTIME_DIR/netbench"
set -- "$@" "/var/tmp/netbench-$user" "/tmp/netbench-$user" "/dev/shm/netbench-$user"

digest() {
  line=$(sha256sum < "$1") && echo "${line%% *}"
}
own() {  # one look: in a shared folder it may become a link, or another user's mount
  (cd -P "$1" && [ -O . ] && folder=$(cd -P "${1%/*}" && pwd -P)/${1##*/} &&
    case $(ls -ldn .) in ?????w*|????????w*) false;; esac &&
    case $(cat /proc/self/mounts) in *" $folder fuse"*) false;; esac &&
    [ "$(pwd -P)" = "$folder" ] && echo "$folder") 2>/dev/null
}
runs() {
  why=$("$1" mover </dev/null 2>&1 >/dev/null)
}
cached() {
  folder=$(own "$1") && file=$folder/$name || return 1
  [ -f "$file" ] && [ "$(digest "$file")" = "$hash" ] && runs "$file"
}
receive() {
  head -c "$size" | { cat > "$temp" || cat > /dev/null; }
}
keep() {
  why=$(mkdir -p "$1" 2>&1) || return 1
  folder=$(own "$1") && chmod 700 "$folder" || {
    why='the folder belongs to another user, or another may write it'; return 1; }
  file=$folder/$name
  temp=$file.$$
  why=$( (true > "$temp") 2>&1) || return 1
  echo netbench:send
  why=$(receive 2>&1)
  [ "$(digest "$temp")" = "$hash" ] || { why=${why:-what arrived is not what was sent}; return 1; }
  why=$(chmod 700 "$temp" 2>&1 && mv -f "$temp" "$file" 2>&1) || return 1
  runs "$file" || {
    why="programs cannot be run from there: $why"; rm -f "$file"; return 1; }
}
prune() {
  cd "$1" && ls -t | grep -E '^worker-[0-9a-f]+$' | grep -vxF "$name" | tail -n +3 |
    while read -r old; do rm -f "$old"; done
}
installed() {
  [ "$(digest "$target" 2>/dev/null)" = "$hash" ]
}
of_root() {
  for at in / /usr /usr/local /usr/local/libexec PLACE "$target"; do
    line=$(ls -ldn "$at" 2>/dev/null) || continue
    set -- $line
    case $1$3 in l*|?????w*|????????w*) ;; *[!0-9]0) continue;; esac
    echo "netbench:others $at $line"
    exit 1
  done
}

found=
for given; do
  if cached "$given"; then found=$file; break; fi
done
if [ -z "$found" ]; then
  for given; do
    temp=
    if keep "$given"; then found=$file; (prune "$folder"); break; fi
    [ -z "$temp" ] || rm -f "$temp"
    rmdir "$given" 2>/dev/null
    printf '%s\\n' "$given: $why"
  done
fi
[ -n "$found" ] || { echo netbench:nowhere; exit 1; }

if [ "$role" = helper ] && [ "$user" != 0 ]; then
  command -v sudo >/dev/null 2>&1 || { echo netbench:nosudo; exit 1; }
  target=PLACE/$name
  of_root
  if ! installed; then
    why=$(sudo -n -- sh -c 'INSTALL' install "$found" "$hash" </dev/null 2>&1 >/dev/null) &&
      echo netbench:installed
    of_root
  fi
  installed && why=$(sudo -n -- "$target" helper </dev/null 2>&1 >/dev/null) || {
    printf '%s\\n' "$why" "netbench:sudo $(id -un) $found"
    exit 1
  }
  set -- sudo -n -- "$target" helper
else
  set -- "$found" "$role" ${as:+"$as"}
fi
umask "$mask"
echo netbench:ready
IFS= read -r go
exec "$@"
""".replace("TOOLS", " ".join(_TOOLS))
    .replace("INSTALL", _INSTALL)
    .replace("PLACE", PLACE)
)


class Parcel(NamedTuple):
    """The worker, as it is sent to a host."""

    data: bytes
    sha256: str


@cache
def _pack(file: Path) -> Parcel:
    data = file.read_bytes()
    return Parcel(data, hashlib.sha256(data).hexdigest())


def worker_file(machine: str, host: str, package: Path = PACKAGE) -> Path:
    """The worker for a machine type (`uname -m`). Errors: HostError: none, or exchanged."""
    file = package / f"worker-{machine}"
    if machine and "/" not in machine and file.is_file():
        if file.read_bytes() != _pack(file).data:
            raise HostError(f"{host}: {file} was installed again: go on in a new process")
        return file
    kind = machine or "an unnamed machine"
    raise HostError(
        f"{host}: this installation of netbench has no worker for {kind} in {package}; wheels have"
        " those of x86_64 and aarch64: install one again; for another little-endian machine run"
        f" `make` in a clone on one, and copy its netbench/engine/worker-{kind} there"
    )


def parcel(machine: str, host: str, package: Path = PACKAGE) -> Parcel:
    """The worker for a machine type, as it is sent. Errors: HostError, as of worker_file()."""
    return _pack(worker_file(machine, host, package))


def _refusal(shell: Shell, answer: list[str], sent: Parcel) -> HostError:
    """The error that the script's answer stands for, with what to do."""
    match answer:
        case ["tool", tool]:
            return shell.failure(
                f"the host has no `{tool}`, which starting a worker needs; install coreutils or"
                " busybox there"
            )
        case ["nowhere"]:
            return shell.failure(
                "no folder of the host keeps and runs the worker; make room in one of them, or set"
                " XDG_CACHE_HOME to a folder of the user's own that is not mounted noexec"
            )
        case ["nosudo"]:
            return shell.refusal("settings need root, and the host has no `sudo`; connect as root")
        case ["others", path, *line] if _PART.fullmatch(path):
            return shell.refusal(
                f"sudo starts nothing below {path}, which others than root can change"
                f" ({' '.join(line[:4])}); connect as root, or make it a folder or file of root's"
                f" own, no link: `chown root {path}; chmod go-w {path}`"
            )
        case ["sudo", account, *path]:
            # no account's name in the first line, which records keep
            why = "`sudo -n` does not start the helper, which changes settings"
            program = " ".join(path)
            if not _ACCOUNT.fullmatch(account) or not program.startswith("/"):  # no option
                return shell.refusal(f"{why}; connect as root")
            install = f"sudo sh -c {shlex.quote(_INSTALL)} install {shlex.quote(program)}"
            rule = f"{account} ALL=(root) NOPASSWD: {PLACE}/worker-* {HELPER}"
            refused = shell.refusal(f"{why}; connect as root, or have two lines run there")
            return RootRefused(
                f"{refused}\n  {install} {sent.sha256}\n  echo {shlex.quote(rule)}"
                f" | sudo install -m 440 /dev/stdin /etc/sudoers.d/netbench-{account}"
            )
    return shell.failure("the worker could not be started")


def start_worker(shell: Shell, role: str, run_as: str = "", package: Path = PACKAGE) -> Process:
    """Start a worker in place of a host's shell: a mover, as the user `run_as` that root becomes
    ("": as the login's); or a helper, as root, by `sudo -n` where the user is another. Says on
    standard error (logging) what sudo has put into PLACE.

    Errors: HostError; RootRefused, with what an administrator runs there in lines of its own.
    """
    sent = parcel(shell.machine, shell.host, package)
    shell.allow(START_SECONDS)
    line = f"{sent.sha256} {len(sent.data)} {role} {run_as}".rstrip()
    shell.begin(_SCRIPT, f"{line}\n".encode())
    for _ in range(ANSWERS):
        answer = shell.hear()
        if answer == ["send"]:
            shell.allow(SEND_SECONDS)
            shell.tell(sent.data)
        elif answer == ["installed"]:
            old = "one that was not started for 30 days is not"
            message = f"{shell.host}: by sudo the helper is in {PLACE} now, and {old}"
            logging.getLogger(__name__).warning(message)
        else:
            break
    if answer == ["ready"]:
        shell.tell(b"\n")
        return shell.process
    shell.finish()
    raise _refusal(shell, answer, sent)
