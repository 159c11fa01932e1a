"""Proposals: the front door. Requesting, computing, applying, rejecting and cancelling them."""
