"""The palette of all pages: search over everything with a name, and commands."""
