"""The shape of a campaign file: every key as a field of a pydantic model, with its kind, default,
description and example. What keys mean together is checked in `netbench.campaign.build`.
"""
