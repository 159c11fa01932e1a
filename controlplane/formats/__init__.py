"""Formats of what comes in and goes out: times, JSON, lines of logs, CSV, what is not storable."""
