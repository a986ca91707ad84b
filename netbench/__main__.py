"""`python -m netbench`: the one place that turns errors into messages and exit codes."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from netbench.errors import NetbenchError

INTERRUPTED = 130


def _interrupt(number: int, frame: FrameType | None) -> None:
    """A polite kill or a closed terminal ends a campaign as Ctrl-C does: settings are put back, records are kept."""
    raise KeyboardInterrupt


def main(argv: list[str] | None = None) -> int:
    """Run one verb; returns the exit code of DESIGN section 6."""
    from netbench import cli

    for number in (signal.SIGTERM, signal.SIGHUP):
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
    except BrokenPipeError:
        # Whoever read our output has enough; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
