"""Rows to the algorithms' values and back: the only translator between the two.

online      a cluster as LeastCost sees it
snapshot    a cluster as a proposal seals it
placement   a snapshot as a PlacementProblem, a plan as moves and measures
"""
