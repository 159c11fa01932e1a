"""The records of a batch that a computation selects, and their aggregates."""
