"""The campaign file: YAML -> model.Campaign, every error at once, each with its line and path."""

from netbench.campaign.editor import json_schema
from netbench.campaign.load import load, parse, transfer_cell

__all__ = ["json_schema", "load", "parse", "transfer_cell"]
