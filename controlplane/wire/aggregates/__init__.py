"""Mergeable aggregates: their columns, how parts merge, and the finalize step."""
