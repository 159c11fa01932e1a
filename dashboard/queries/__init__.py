"""Pages of queries: submission, results, retention and key grouping."""
