"""Refinement of placements within the caps."""

from algorithms.placement.refine.refinement import Refined, refine
