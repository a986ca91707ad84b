#!/usr/lib/netbench/bin/python3 -I
"""netbench(1): docs in /usr/share/doc/netbench."""

import sys

from netbench.__main__ import main

sys.exit(main())
