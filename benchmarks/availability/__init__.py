"""Benchmarks of restarts and outages of a running Weir."""
