"""A mutation run: how many small faults of the code the tests detect."""
