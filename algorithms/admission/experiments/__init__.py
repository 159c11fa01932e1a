"""Figures 10, 11 and 14 of the admission paper as named experiments."""

from typing import Final

from algorithms.admission.experiments.claims import CLAIMS, SCALE
from algorithms.admission.experiments.figures import FIG10, FIG11, LEVELS
from algorithms.admission.experiments.growth import FIG14
from algorithms.experiment import Experiment, with_claims

EXPERIMENTS: Final[tuple[Experiment, ...]] = with_claims(
    (FIG10, FIG11, FIG14, LEVELS), CLAIMS, SCALE
)

__all__ = ["EXPERIMENTS"]
