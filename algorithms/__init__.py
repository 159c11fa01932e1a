"""Weir's planners as pure, Django-free values and functions."""
