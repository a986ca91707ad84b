"""The command line. Each verb is one file: its arguments, what it calls, and its answer as text.

`parser.py` lists the verbs. Verbs import what they need when they run, so that `--help` and
`--version` are quick.
"""

from netbench.cli.parser import run as run
