"""Campaigns of many hosts: inventories, parts on several controllers, what single hosts do."""
