"""Benchmarks of the planners' algorithms."""
