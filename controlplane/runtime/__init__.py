"""Starts and ends Weir on one machine: what `make run` runs, free of Django."""
