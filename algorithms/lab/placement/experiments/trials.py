"""Algorithms on one instance or one history: run them and measure them."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np

from algorithms.lab.experiment import Axis, Measures, part
from algorithms.lab.placement.simulation import SimulatedCluster
from algorithms.lab.placement.workloads.events import History
from algorithms.lab.registry import PLACEMENT, algorithm, algorithms
from algorithms.placement.online import OnlinePlacement
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.result import PlacementPlan
from algorithms.vocabulary import Floats, Ints, Parameters, Progress

_MAX_LOAD: Final = Axis("max_load", "Queries on the fullest server")
_IMBALANCE: Final = Axis("imbalance", "Imbalance of the load")
PLAN_MEASURES: Final = (
    "replication_factor",
    "traffic",
    "max_load",
    "imbalance",
    "lower_bound",
    "sources",
    "seconds",
)
PLAN_AXES: Final = (
    Axis("traffic", "Delivered rate"),
    _MAX_LOAD,
    _IMBALANCE,
    Axis("lower_bound", "Lower bound of the delivered rate"),
    Axis("sources", "Sources with readers"),
    Axis("seconds", "Time of the computation", "s"),
)
HISTORY_MEASURES: Final = (
    "replication_factor",
    "replication_factor_end",
    "live",
    "max_load",
    "imbalance",
    "moved",
    "seconds",
)

HISTORY_AXES: Final = (
    Axis("replication_factor_end", "Replication factor at the end"),
    Axis("live", "Live queries"),
    _MAX_LOAD,
    _IMBALANCE,
    Axis("moved", "Queries placed again"),
    Axis("seconds", "Time of the replay", "s"),
)

# Reports of progress per replay, at least.
_REPORTS: Final = 200


class Drawable(Protocol):
    """Parameters of an experiment that make one instance per seed."""

    def to_mapping(self) -> dict[str, Any]:
        """Return the values by name."""

    def problem(self, seed: int) -> PlacementProblem:
        """Draw the instance of one seed."""


class Replayable(Protocol):
    """Parameters of an experiment that make one history per seed, to be sampled so often."""

    @property
    def samples(self) -> int:
        """The number of samples in the measured span."""

    def to_mapping(self) -> dict[str, Any]:
        """Return the values by name."""

    def history(self, seed: int) -> History:
        """Draw the history of one seed."""


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


def solve_in_turn(
    parameters: Drawable, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the measures of each algorithm of `series` on the instance of one seed."""
    problem = parameters.problem(seed)
    for number, name in enumerate(series):
        chosen = configure(name, parameters.to_mapping() | {"seed": seed})
        plan = algorithm(PLACEMENT, name).solve(problem, chosen, part(report, number, len(series)))
        yield name, plan_measures(problem, plan)


def configure(name: str, settings: Mapping[str, Any]) -> Parameters:
    """Return the parameters of an algorithm, with those of the `settings` that it has."""
    kind = algorithm(PLACEMENT, name).parameters
    known = {field.name for field in kind.fields()}
    chosen: Parameters = kind.from_mapping({k: v for k, v in settings.items() if k in known})
    return chosen


def plan_measures(problem: PlacementProblem, plan: PlacementPlan) -> Measures:
    """Return the figures of one plan; `imbalance` is the largest load over the mean, less 1."""
    mean = problem.queries / problem.servers
    return {
        "replication_factor": plan.replication_factor,
        "traffic": plan.traffic,
        "max_load": plan.max_load,
        "imbalance": plan.max_load / mean - 1 if mean else None,
        "lower_bound": plan.lower_bound,
        "sources": int((problem.readers > 0).sum()),
        "seconds": plan.seconds,
    }


def replayable() -> tuple[str, ...]:
    """Return the algorithms that can live through a history; reservations are for one workload."""
    names = (algorithm.name for algorithm in algorithms(PLACEMENT, "online"))
    return tuple(name for name in names if name != "reservation")


def replay_in_turn(
    parameters: Replayable, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the measures of each algorithm of `series` on the history of one seed."""
    history = parameters.history(seed)
    positions = history.positions(parameters.samples)
    rates = history.live_rates(positions)
    for number, name in enumerate(series):
        algorithm = configure(name, parameters.to_mapping() | {"seed": seed})
        assert isinstance(algorithm, OnlinePlacement)
        course = replay(algorithm, history, positions, part(report, number, len(series)))
        yield name, history_measures(course, rates)


def replay(
    algorithm: OnlinePlacement, history: History, positions: Ints, report: Progress
) -> Course:
    """Replay `history` and sample it after each number of events in `positions`, ascending."""
    started = time.perf_counter()
    cluster = SimulatedCluster(algorithm, history.problem)
    seen: list[tuple[float, int, int, int]] = []
    for begin, end in pairwise([0, *positions.tolist()]):
        for first, last in pairwise(_stretches(begin, end, int(positions[-1]))):
            report(first / int(positions[-1]))
            cluster.apply_events(history.events, first, last)
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


def history_measures(course: Course, live_rates: Floats) -> Measures:
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
