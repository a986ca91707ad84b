"""A git repository whose tree is built as a kernel is, by a Makefile of a few lines: a kernel takes
minutes.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

# What of a kernel's Makefile is used: configurations, and dir-pkg, which compiles what has changed.
MAKEFILE = """\
tinyconfig:
\t@echo "CONFIG_TINY=y" > $(O)/.config
olddefconfig:
\t@grep -v LOST $(O)/.config > $(O)/all
\t@cmp -s $(O)/all $(O)/.config || cp $(O)/all $(O)/.config
$(O)/tcp.o: tcp.c $(O)/.config
\t@echo compiled >> $(O)/compiled
\t$(CC) -c tcp.c -o $(O)/tcp.o
dir-pkg: $(O)/tcp.o
\t@mkdir -p $(O)/tar-install/boot
\t@python3 image.py 6.1.0$(LOCALVERSION) $(O)/tar-install/boot
\t@cp $(O)/.config $(O)/tar-install/boot/config
\t@touch $(O)/tar-install/boot/vmlinux-6.1.0
\t@echo built $(EXTRA)
"""
IMAGE = """\
import struct, sys
image = bytearray(0x400)
image[0x202:0x206] = b"HdrS"
struct.pack_into("<H", image, 0x20E, 0x100)
image[0x300:] = f"{sys.argv[1]} (netbench)".encode() + bytes(64)
open(f"{sys.argv[2]}/vmlinuz-{sys.argv[1]}", "wb").write(image)
"""


class Repository:
    """A git repository with a tree that is built as a kernel is."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir()
        self.git("init", "-q", "-b", "master")
        (place / "Makefile").write_text(MAKEFILE)
        (place / "image.py").write_text(IMAGE)
        self.base = self.commit("int segments = 1;\n", "v1")

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
        argv = ("git", "-C", str(self.place), *identity, *words)
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, source: str, tag: str) -> str:
        (self.place / "tcp.c").write_text(source)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", tag)
        self.git("tag", tag)
        return self.git("rev-parse", "HEAD")
