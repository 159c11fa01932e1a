"""Figures 9 to 15 of the migration paper as named experiments."""

from typing import Final

from algorithms.experiment import Experiment
from algorithms.migration.experiments.figures import PLANNED
from algorithms.migration.experiments.live import FIG15

EXPERIMENTS: Final[tuple[Experiment, ...]] = (*PLANNED, FIG15)

__all__ = ["EXPERIMENTS"]
