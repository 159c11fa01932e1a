"""Checkpoint directories: reading, locking, bootstrapping and swapping them."""
