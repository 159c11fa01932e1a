"""Refinement: any placement within the caps, made better."""

from algorithms.placement.refine.algorithm import Refined
from algorithms.placement.refine.refining import refine

__all__ = ["Refined", "refine"]
