"""Queries that are not submitted yet: their preview, and the explanation of their costs."""
