"""Inventories: the hosts and groups of a file of Ansible's, or of a list of names."""

from netbench.campaign.inventory.draft import Inventory
from netbench.campaign.inventory.read import read_inventory

__all__ = ["Inventory", "read_inventory"]
