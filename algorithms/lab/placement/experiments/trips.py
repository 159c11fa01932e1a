"""The same experiments on real trips instead of random graphs."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from algorithms.estimates import MB, Estimate
from algorithms.lab.datasets import DATA_FOLDER, data_folder
from algorithms.lab.experiment import MAX_SEEDS, Experiment, Panel, Repeated
from algorithms.lab.placement.experiments import setup, trials
from algorithms.lab.placement.workloads.events import History
from algorithms.lab.placement.workloads.trips import (
    RATES_FILE,
    TRIPS_FILE,
    Trips,
    read_trips,
    tile_rates,
)
from algorithms.lab.registry import PLACEMENT, algorithms
from algorithms.placement.problem import PlacementProblem, relative_slack
from algorithms.vocabulary import Floats, parameter


@dataclass(frozen=True)
class RealTrips(Repeated):
    """All trips of a week at once, or one by one in order of their starts."""

    seeds: int = parameter(
        1,
        help="How often each algorithm runs; the trips are always the same, so only algorithms "
        "that draw random numbers differ.",
        minimum=1,
        maximum=MAX_SEEDS,
    )
    servers: int = parameter(
        100,
        letter="k",
        unit="servers",
        help="Number of servers.",
        minimum=1,
        maximum=setup.MAX_SERVERS,
    )
    real_rates: int = parameter(
        1,
        title="Use recorded rates",
        help="1: a tile's rate is the mean number of position reports per second. 0: all rates 1.",
        minimum=0,
        maximum=1,
    )
    nu: float = relative_slack()
    alpha: float = setup.absolute_slack()

    def estimate_trial(self, series: str) -> Estimate:
        """Return the estimate of one algorithm on the recorded trips."""
        del series
        return Estimate(400 * MB + 1e6 * self.servers, 120.0)

    def problem(self, seed: int) -> PlacementProblem:
        """Return the instance, the same for every seed.

        Raises `BadProblem` where the data is not found.
        """
        del seed
        trips, rates = _read(data_folder())
        flows = rates if self.real_rates else np.ones_like(rates)
        return trips.subscriptions.problem(self.servers, self.nu, flows)


@dataclass(frozen=True)
class LiveTrips(RealTrips):
    """Trips arrive and depart at their true times."""

    samples: int = parameter(
        1_000,
        title="Measured moments",
        help="At how many moments of the week the replication factor is taken; their mean is "
        "shown.",
        minimum=1,
        maximum=100_000,
    )

    def history(self, seed: int) -> History:
        """Return the week, the same for every seed; times in seconds.

        Raises `BadProblem` where the data is not found.
        """
        trips, _ = _read(data_folder())
        return History(self.problem(seed), trips.events(), 0.0, float(trips.starts[-1]))


@lru_cache(maxsize=1)
def _read(folder: Path) -> tuple[Trips, Floats]:
    trips = read_trips(folder / TRIPS_FILE)
    return trips, tile_rates(folder / RATES_FILE, trips.tiles)


_TRIPS: Final = (
    "136,694 taxi trips over San Francisco in May 2008, each reading the map tiles (1 km) on its "
    f"way, 1,437 tiles in all. Needs the files {TRIPS_FILE} and {RATES_FILE} in the folder that "
    f"{DATA_FOLDER} names."
)

TRIPS: Final = Experiment(
    planner=PLACEMENT,
    name="trips",
    title="Real trips: servers",
    about="As section 6.2, figure 3(c), and section 6.3.1, figure 4(c), on real queries that all "
    f"stay: {_TRIPS}",
    x=setup.SERVERS,
    panels=(Panel("Real trips that stay: servers", setup.REPLICATION),),
    parameters=RealTrips,
    values=setup.SERVER_COUNTS,
    series=("ic", "mms", "off_rand", *setup.ONLINE_SERIES),
    choices=tuple(algorithm.name for algorithm in algorithms(PLACEMENT)),
    measures=trials.PLAN_MEASURES,
    axes=trials.PLAN_AXES,
    trial=trials.solve_in_turn,
)
LIVE_TRIPS: Final = Experiment(
    planner=PLACEMENT,
    name="trips_live",
    title="Real trips as they come and go: servers",
    about="As section 6.3.2, figure 5(c), on real queries at their true times, at most 300 at "
    "once; the replication factor is averaged over evenly spaced moments of the week. With so "
    f"few queries the absolute slack decides much. {_TRIPS}",
    x=setup.SERVERS,
    panels=(Panel("Real trips that come and go: servers", setup.REPLICATION),),
    parameters=LiveTrips,
    values=(2.0, 5.0, 10.0, 20.0, 50.0, 100.0),
    series=setup.ONLINE_SERIES,
    choices=trials.replayable(),
    measures=trials.HISTORY_MEASURES,
    axes=trials.HISTORY_AXES,
    trial=trials.replay_in_turn,
)
