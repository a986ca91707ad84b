"""`python -m netbench`: the one place that turns errors into messages and exit codes."""

from __future__ import annotations

import atexit
import gc
import math
import os
import signal
import sys
import time
from contextlib import suppress
from types import FrameType

from netbench.base.cancel import held_back
from netbench.base.control_characters import escape_controls
from netbench.base.errors import NetbenchError, RequestError
from netbench.base.terminal import fold

INTERRUPTED = 130
BACKGROUND = "watch"  # the verb that must not disturb; what it imports costs most of a second
SAME_SECONDS = 0.5  # a terminal that closes often says so twice: that is one interrupt
_first: float | None = None  # when the first interrupt arrived


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C, a polite kill and a closed terminal end a campaign in order: settings are put back,
    records are kept.

    The second one ends this process at once. Nothing is lost by that either: records are on disk,
    and workers whose controller is gone put everything back by themselves.
    """
    global _first  # noqa: PLW0603  # a signal handler has nowhere else to remember
    now = time.monotonic()
    if _first is None and frame and frame.f_code.co_filename.endswith("_weakrefset.py"):
        signal.signal(signal.SIGALRM, _interrupt)  # Python forgets what a weakref's callback raises
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        return
    if _first is None:
        _first = now
        held_back.interrupt()
        return
    if now - _first > SAME_SECONDS:
        os._exit(INTERRUPTED)


def _take_signals() -> None:
    """Let `_interrupt` hear them, but for those that the user has decided to ignore: nohup, a
    shell's background job. Of children whose end the parent ignored, none could be waited for.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _give_way() -> None:
    """Run only where nothing else wants a CPU."""
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except OSError:  # a container may refuse it
        os.nice(19)


def _conclude() -> None:
    """The outcome stands: an interrupt changes nothing any more, and ends this process at once."""
    global _first  # noqa: PLW0603
    if _first is None:
        _first = -math.inf


def _check_streams() -> None:
    """Standard streams that are there and take every character: one that is closed would be the
    next file that is opened.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # not there where a test replaced the stream
            stream.reconfigure(errors="replace")


def _release_streams() -> None:
    """Flush standard output and standard error; discard what cannot be written.

    Python writes out its buffers once more when it exits, and where that fails its exit status is
    120 instead of ours.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):  # a test's has no descriptor, and is not written out at exit
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
                stream.flush()


def _complain(text: str) -> None:
    """Print an error on standard error, folded on a terminal. Never fails: it has nowhere to go."""
    lines = escape_controls(f"netbench: {text}").split("\n")
    with suppress(OSError):
        if sys.stderr.isatty():
            lines = [fold(line) for line in lines]
        print("\n".join(lines), file=sys.stderr, flush=True)


def _os_error(error: OSError) -> int:
    """A path that was given and cannot be used; others have no business here."""
    what, remedy = error.strerror, "make room there, or set TMPDIR to a folder that has some"
    if error.filename is not None:
        what = f"{os.fsdecode(error.filename)}: {what}"
        remedy = "check the path and its permissions"
    elif not isinstance(error, FileNotFoundError):  # of tempfile
        return _defect(error)
    _complain(f"{what}; {remedy}")
    return RequestError.exit_code


def _defect(error: Exception) -> int:
    """An unexpected error as a message; `python -X dev` shows the traceback."""
    if "cffi library" in str(error):  # it lacks a name
        _complain("the built engine is older than its source: run `make`")
        return RequestError.exit_code
    if isinstance(error, MemoryError):
        _complain("there is not enough memory; see `free` and, of this shell, `ulimit -a`")
        return NetbenchError.exit_code
    if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("netbench"):
        _complain(
            f"{sys.executable} has no package {error.name}: in a clone, run `make` and then"
            " `.venv/bin/python -m netbench`"
        )
        return RequestError.exit_code
    if sys.flags.dev_mode:
        raise error
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    place = (
        f" at {os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}"
        if frame
        else ""
    )
    _complain(
        f"this is a defect of netbench: {type(error).__name__}{place}: {error}; records that were"
        " written are safe; please report it with what the same command prints as `python -X dev"
        " -m netbench ...`"
    )
    return NetbenchError.exit_code


def _freeze() -> None:
    if "duckdb" not in sys.modules:  # which complains of what is left
        gc.freeze()


def _check_surroundings() -> None:
    """Refuse what every verb would fail in. Errors: RequestError."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise RequestError("the working directory was removed; go to another: `cd`") from error


def _verb(argv: list[str]) -> int:
    _check_surroundings()
    from netbench.cli import parser

    try:
        return parser.run(argv)
    except SystemExit as stop:  # argparse has said why
        return int(stop.code or 0)


def _outcome(argv: list[str]) -> int:
    """Run one verb; its exit code, or that of the error which it ended with."""
    try:
        return _verb(argv)
    except NetbenchError as error:
        _complain(str(error))
        return error.exit_code
    except OSError as error:
        return _os_error(error)
    except Exception as error:  # no traceback may reach a user
        return _defect(error)


def main(argv: list[str] | None = None) -> int:
    """Run one verb; its exit code (docs/reference/command-line.md), also of a closed stream."""
    if {"_ARGCOMPLETE", "COMP_LINE"} <= os.environ.keys():  # a shell asks what could be typed next
        from netbench.cli.completion import complete

        complete()
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == [BACKGROUND]:
        _give_way()
    os.umask(os.umask(0o022) | 0o022)  # others may write nothing of ours
    _check_streams()
    _take_signals()
    gc.set_threshold(100_000)  # what is imported is no garbage: to look for it takes 40 ms
    atexit.register(_freeze)  # and 150 more at the end
    try:
        code = _outcome(words)
        _conclude()
    except KeyboardInterrupt:
        _complain("interrupted")
        code = INTERRUPTED
    _release_streams()
    exec("")  # forgets an interrupt that met an exec: Python ends by SIGINT even if it was caught
    return code


if __name__ == "__main__":
    sys.exit(main())
