"""Cutting the recordings of the demonstrations out of their source data."""
