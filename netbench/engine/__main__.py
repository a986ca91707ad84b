"""A worker in a process of its own, served by the library through cffi: `python -m
netbench.engine helper`, or `mover [USER]`.
"""

import os
import sys

from netbench.engine.binding import Duty, serve


def main(duty: str, user: str = "") -> int:
    """Serve the controller on standard input and output; nothing else may write there."""
    data_in, data_out = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    return serve(data_in, data_out, Duty[duty.upper()], user)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
