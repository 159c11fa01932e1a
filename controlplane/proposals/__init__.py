"""Proposals: requests, decisions, drift, and the ledger of predictions and measurements."""
