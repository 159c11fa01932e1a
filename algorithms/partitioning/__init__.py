"""Partitioning: which worker takes which key."""
