"""`knock.py HOW FIRST LAST` connects to ports until it is killed, to hold, close or talk."""

import socket
import sys
from contextlib import suppress
from pathlib import Path

how, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
held = []
while True:
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        port, state = int(line.split()[1].partition(":")[2], 16), line.split()[3]
        with suppress(OSError):
            if state == "0A" and first <= port <= last:
                held.append(socket.create_connection(("127.0.0.1", port), 1))
                if how == "talk":
                    held[-1].sendall(bytes(41))
                elif how == "close":
                    held.pop().close()
