"""The journal: one line of journal.jsonl for whatever must be known after a crash."""
