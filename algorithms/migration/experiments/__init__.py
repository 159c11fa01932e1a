"""Figures 9 to 14 of the migration paper as named experiments."""

from algorithms.migration.experiments.figures import MIGRATION_EXPERIMENTS

__all__ = ["MIGRATION_EXPERIMENTS"]
