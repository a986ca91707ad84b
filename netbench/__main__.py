"""`python -m netbench`: the one place that turns errors into messages and exit codes."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from types import FrameType

from netbench.errors import NetbenchError, RequestError

INTERRUPTED = 130
GONE = (errno.EPIPE, errno.EIO)  # nobody reads our output any more: a closed pipe, a closed terminal
SAME_SECONDS = 0.5  # a terminal that closes often says so twice: that is one interrupt
_first: float | None = None  # when the first interrupt came


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C, a polite kill and a closed terminal end a campaign in order: settings are put back, records are kept.

    The second one ends this process at once. Nothing is lost by that either: records are on disk, and workers whose controller is
    gone put everything back by themselves.
    """
    global _first  # noqa: PLW0603  # a signal handler has nowhere else to remember
    now = time.monotonic()
    if _first is None:
        _first = now
        raise KeyboardInterrupt
    if now - _first > SAME_SECONDS:
        os._exit(INTERRUPTED)


def main(argv: list[str] | None = None) -> int:
    """Run one verb; returns the exit code of DESIGN section 6."""
    from netbench import cli

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or a shell's background job: the user has decided
            signal.signal(number, _interrupt)
    try:
        code = cli.run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return code
    except NetbenchError as error:
        print(f"netbench: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("netbench: interrupted", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        if error.errno not in GONE and error.filename is not None:
            print(f"netbench: {error.filename}: {error.strerror}; check the path and who may read it", file=sys.stderr)
            return RequestError.exit_code
        if error.errno not in GONE:
            raise
        # Whoever read our output has enough; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INTERRUPTED if _first is not None else 0


if __name__ == "__main__":
    sys.exit(main())
