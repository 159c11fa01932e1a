"""Liveness of Weir's own processes, of Redis and the database, and of the task queues."""
