"""Arrays in, intervals and verdicts out; no file and no record."""
