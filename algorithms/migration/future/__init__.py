"""Migrations to come, section 4: sequences that are known, and chances that are."""
