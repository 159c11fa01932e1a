"""Archiving, in a worker of its own that yields the processors to all others."""
