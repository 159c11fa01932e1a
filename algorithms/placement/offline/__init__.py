"""The offline algorithms: all queries are known, section 4, and what goes beyond the paper."""

from algorithms.placement.offline.greedy import IncrementalCost, Mms
from algorithms.placement.offline.random import OffRand

__all__ = ["IncrementalCost", "Mms", "OffRand"]
