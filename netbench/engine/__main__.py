"""A mover in a process of its own, served by the library through cffi: `python -m
netbench.engine mover [USER]`. A helper is always the executable (hosts/deploy.py).
"""

import os
import sys
from typing import NoReturn

from netbench.engine.binding import Duty, serve


def main(duty: str, user: str = "") -> NoReturn:
    """Serve the controller on standard input and output; nothing else may write there.

    A flow that hangs in the kernel keeps the process, and what is still open: the controller sees
    the end of a stream that is closed before.
    """
    if duty != "mover":
        sys.exit(f"there is no {duty} in Python")
    data_in, data_out = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    code = serve(data_in, data_out, Duty.MOVER, user)
    os.closerange(0, max(2, data_in, data_out) + 1)
    os._exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
