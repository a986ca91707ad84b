"""The campaign file: YAML -> model.Campaign, every error at once, each with its line and path."""

from netbench.campaign.load import changed, load, parse, transfer_cell
from netbench.campaign.schema.editor import json_schema

__all__ = ["changed", "json_schema", "load", "parse", "transfer_cell"]
