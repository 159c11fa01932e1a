"""Computations in child processes with limits of memory and time, which can be ended at once."""
