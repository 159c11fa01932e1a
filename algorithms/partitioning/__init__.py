"""Partitioning: the assignment of keys to workers."""
