"""Endpoints of queries: results, change feed, drop rules, key groupings and aggregators."""
