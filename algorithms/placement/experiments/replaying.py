"""Online algorithms on one history: replay it, and measure them over its measured span."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Protocol

import numpy as np

from algorithms.experiment import Measures, part
from algorithms.placement.experiments.solving import configured
from algorithms.placement.online import OnlinePlacement
from algorithms.placement.online.living import LivingCluster
from algorithms.placement.workloads.history import History
from algorithms.registry import PLACEMENT, algorithms
from algorithms.vocabulary import Floats, Ints, Progress

MEASURES: Final = (
    "replication_factor",
    "replication_factor_end",
    "live",
    "max_load",
    "imbalance",
    "moved",
    "seconds",
)

# Reports of progress per replay, at least.
_REPORTS: Final = 200


class Replayable(Protocol):
    """Parameters of an experiment that make one history per seed."""

    @property
    def samples(self) -> int:
        """The number of samples in the measured span."""

    def history(self, seed: int) -> History:
        """Draw the history of one seed."""

    def settings(self, seed: int) -> dict[str, float]:
        """Return the parameters of the algorithms, by the names of their parameters."""


@dataclass(frozen=True, eq=False)
class Course:
    """The measures of a replay at its samples, then totals.

    `traffic` float64[s]: delivered rate. `live` int64[s]: queries. `largest` int64[s]: queries on
    the fullest server. `servers` int64[s]: their number. `moved`: queries placed again
    because their server went, over the whole run. `seconds`: time taken, by the wall clock.
    """

    traffic: Floats
    live: Ints
    largest: Ints
    servers: Ints
    moved: int
    seconds: float


def replayable() -> tuple[str, ...]:
    """Return the algorithms that can live through a history; reservations are for one workload."""
    names = (algorithm.name for algorithm in algorithms(PLACEMENT, "online"))
    return tuple(name for name in names if name != "reservation")


def replayed_in_turn(
    parameters: Replayable, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the measures of each algorithm of `series` on the history of one seed."""
    history = parameters.history(seed)
    positions = history.positions(parameters.samples)
    rates = history.live_rates(positions)
    for number, name in enumerate(series):
        algorithm = configured(name, parameters.settings(seed))
        assert isinstance(algorithm, OnlinePlacement)
        course = replayed(algorithm, history, positions, part(report, number, len(series)))
        yield name, measures(course, rates)


def replayed(
    algorithm: OnlinePlacement, history: History, positions: Ints, report: Progress
) -> Course:
    """Replay `history` and sample it after each number of events in `positions`, ascending."""
    started = time.perf_counter()
    cluster = LivingCluster(algorithm, history.problem)
    seen: list[tuple[float, int, int, int]] = []
    for begin, end in pairwise([0, *positions.tolist()]):
        for first, last in pairwise(_stretches(begin, end, int(positions[-1]))):
            report(first / int(positions[-1]))
            cluster.live_through(history.events, first, last)
        loads = cluster.loads
        seen.append((cluster.traffic, int(loads.sum()), int(loads.max()), len(loads)))
    traffic, live, largest, servers = zip(*seen, strict=True)
    return Course(
        traffic=np.array(traffic, np.float64),
        live=np.array(live, np.int64),
        largest=np.array(largest, np.int64),
        servers=np.array(servers, np.int64),
        moved=cluster.moved,
        seconds=time.perf_counter() - started,
    )


def measures(course: Course, live_rates: Floats) -> Measures:
    """Return the means over all samples with a live query, except where noted.

    `replication_factor_end` is of the last sample, None without a live query then; `max_load` is
    the largest of all samples; `imbalance` is the largest load over the mean, less 1; `moved` and
    `seconds` are of the whole replay. Without any live query the means are None.
    """
    alive = np.flatnonzero(live_rates > 0)
    factors = course.traffic[alive] / live_rates[alive]
    skew = course.largest[alive] * course.servers[alive] / course.live[alive] - 1
    ended = len(alive) > 0 and alive[-1] == len(live_rates) - 1
    return {
        "replication_factor": factors.mean() if len(alive) else None,
        "replication_factor_end": factors[-1] if ended else None,
        "live": course.live.mean(),
        "max_load": course.largest.max(),
        "imbalance": skew.mean() if len(alive) else None,
        "moved": course.moved,
        "seconds": course.seconds,
    }


def _stretches(begin: int, end: int, events: int) -> list[int]:
    """Return the stops from `begin` to `end` at which progress is reported."""
    step = max(1, events // _REPORTS)
    return [*range(begin, end, step), end]
