"""Measurements of appends of records."""
