"""Proposals: their life from the request to the decision, and what becomes of their promises."""
