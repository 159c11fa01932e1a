"""Exact plans of load shedding from the cuts and optimal bases of its linear program."""
