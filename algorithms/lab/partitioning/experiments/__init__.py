"""Figures of papers 001 (12, 13, 15) and 002 (4, 6 to 13) on partitioning, by name."""

from typing import Final

from algorithms.lab.experiment import Experiment, with_claims
from algorithms.lab.partitioning.experiments.claims import CLAIMS, SCALE
from algorithms.lab.partitioning.experiments.courses import FIG9, FIG10, FIG13
from algorithms.lab.partitioning.experiments.skew import FIG4, FIG6, FIG7, FIG8
from algorithms.lab.partitioning.experiments.virtual import FIG11, FIG12, SLOTS
from algorithms.lab.partitioning.experiments.windows_and_keys import (
    FREQUENT_KEYS,
    PANES,
    RELOCATIONS,
)

EXPERIMENTS: Final[tuple[Experiment, ...]] = with_claims(
    (
        FIG4,
        FIG6,
        FIG7,
        FIG8,
        FIG9,
        FIG10,
        FIG11,
        FIG12,
        FIG13,
        SLOTS,
        PANES,
        RELOCATIONS,
        FREQUENT_KEYS,
    ),
    CLAIMS,
    SCALE,
)
