"""Benchmarks of plans from running placements."""
