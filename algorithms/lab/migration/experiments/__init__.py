"""Figures 9 to 15 of the migration paper as named experiments."""

from typing import Final

from algorithms.lab.experiment import Experiment, with_claims
from algorithms.lab.migration.experiments.claims import CLAIMS, SCALE
from algorithms.lab.migration.experiments.figures import PLANNED
from algorithms.lab.migration.experiments.live import FIG15

EXPERIMENTS: Final[tuple[Experiment, ...]] = with_claims((*PLANNED, FIG15), CLAIMS, SCALE)
