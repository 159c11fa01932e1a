"""Faults of queries: exceptions, isolation of failing queries, and probes in a child."""
