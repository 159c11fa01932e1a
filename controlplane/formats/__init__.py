"""Formats of what comes in and goes out: times, lines of logs and CSV, what is not storable."""
