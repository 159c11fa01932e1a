"""The offline algorithms of section 4: all queries are known in advance."""

from algorithms.placement.offline.rules import IncrementalCost, Mms, Mqp, OffRand, SingleSource
