"""Figures 10, 11, 13, 14, 15 and table 3 of paper 003 on load shedding, by name."""

from typing import Final

from algorithms.lab.experiment import Experiment, with_claims
from algorithms.lab.shedding.experiments.changes import FIG15A, FIG15B, FIG15C
from algorithms.lab.shedding.experiments.claims import CLAIMS, SCALE
from algorithms.lab.shedding.experiments.dimensionality import FIG14A, FIG14B, TABLE3
from algorithms.lab.shedding.experiments.fan_out import FIG13
from algorithms.lab.shedding.experiments.load_distribution import FIG10, FIG11A
from algorithms.lab.shedding.experiments.provision import FIG11C

EXPERIMENTS: Final[tuple[Experiment, ...]] = with_claims(
    (
        FIG10,
        FIG11A,
        FIG11C,
        FIG13,
        FIG14A,
        FIG14B,
        TABLE3,
        FIG15A,
        FIG15B,
        FIG15C,
    ),
    CLAIMS,
    SCALE,
)
