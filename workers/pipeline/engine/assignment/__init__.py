"""The queries and tasks that a node evaluates."""
