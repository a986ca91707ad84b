"""External programs as cells: a file for each built-in tool, and one for those of a campaign.

A tool's file has its limits, its command lines and the parser of its output; catalogue.py has a row
for each.
"""
