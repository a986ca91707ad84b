"""The command line. Each verb is one file: its arguments, what it calls, and its answer as text.

`parser.py` lists the verbs, and loads the one that is asked for; those of add-ons lie in their
rooms, as NAME_verb.py.
"""
