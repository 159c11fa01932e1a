"""The offline algorithms of section 4: all queries are known in advance."""

from algorithms.placement.offline.greedy import IncrementalCost, Mms
from algorithms.placement.offline.mqp import Mqp
from algorithms.placement.offline.random import OffRand
from algorithms.placement.offline.single_source import SingleSource

__all__ = ["IncrementalCost", "Mms", "Mqp", "OffRand", "SingleSource"]
