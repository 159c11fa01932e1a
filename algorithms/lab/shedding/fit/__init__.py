"""Feasible input tables: the input rates that nodes can process (paper 003, section 6)."""
