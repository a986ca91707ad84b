"""Campaigns without hosts and kernels, which `judge` fills in."""
