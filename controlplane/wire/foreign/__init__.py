"""Entries that others may have written: the door for all readers, and the form of telemetry."""
