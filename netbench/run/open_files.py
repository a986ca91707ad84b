"""Room for the open files of a fleet: a shell allows a process 1,024 as a rule, its hard limit many
more.
"""

from __future__ import annotations

import resource

A_WORKER = 8  # files: its pipes, or its host's socket, and those of a reconnect beside them
OTHERS = 512  # of the controller itself: its result, its libraries, an editor's notebook


def allow_files(workers: int) -> None:
    """Raise this process's limit of open files as far as so many workers may need, and as the hard
    limit lets it. A limit that is enough stays as it is.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OTHERS + A_WORKER * workers
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
