"""Steps from a campaign: no clock, no host."""
