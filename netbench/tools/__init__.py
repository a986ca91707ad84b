"""External programs as cells: a class for each built-in tool, and one for those of a campaign.

A tool's class has its limits, its command lines and the parser of its output; adaptors.py has a row
for each.
"""
