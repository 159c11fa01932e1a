"""The ranked list of changes before an exceeded limit, and what it is computed from."""
