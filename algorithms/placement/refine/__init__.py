"""Refinement of placements within the caps."""

from algorithms.placement.refine.algorithm import Refined
from algorithms.placement.refine.refining import refine

__all__ = ["Refined", "refine"]
