"""Figures 10, 11 and 14 of the admission paper as named experiments."""

from typing import Final

from algorithms.lab.admission.experiments.claims import CLAIMS, SCALE
from algorithms.lab.admission.experiments.figures import FIG10, FIG11, LEVELS
from algorithms.lab.admission.experiments.growth import FIG14
from algorithms.lab.experiment import Experiment, with_claims

EXPERIMENTS: Final[tuple[Experiment, ...]] = with_claims(
    (FIG10, FIG11, FIG14, LEVELS), CLAIMS, SCALE
)
