"""Measurements of Weir: speed and quality, with fixed seeds."""
