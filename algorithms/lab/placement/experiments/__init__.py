"""Figures 3 to 7 of section 6 as named experiments, and the same questions on real trips."""

from typing import Final

from algorithms.lab.experiment import Experiment, with_claims
from algorithms.lab.placement.experiments.claims import CLAIMS, SCALE
from algorithms.lab.placement.experiments.departures import CHURN, DEPARTURES
from algorithms.lab.placement.experiments.static import OFFLINE, ONLINE, RATES
from algorithms.lab.placement.experiments.trips import LIVE_TRIPS, TRIPS

EXPERIMENTS: Final[tuple[Experiment, ...]] = with_claims(
    (
        *OFFLINE,
        *ONLINE,
        *DEPARTURES,
        *CHURN,
        *RATES,
        TRIPS,
        LIVE_TRIPS,
    ),
    CLAIMS,
    SCALE,
)
