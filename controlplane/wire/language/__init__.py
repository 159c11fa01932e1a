"""The language of queries: expressions as SQL text, checked against the schema of a stream."""
