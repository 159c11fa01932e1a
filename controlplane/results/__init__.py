"""Results of queries: windows in Redis and in the archive, and their life cycle."""
