"""The plan of a placement algorithm."""

import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from algorithms.placement.problem import PlacementProblem
from algorithms.vocabulary import Ints, Parameters, Progress, SmallInts, silent


@dataclass(frozen=True, eq=False)
class PlacementPlan:
    """An assignment of every query to a server, with its measures.

    `assignment` int32[n]: the server of each query. `loads` int64[k]: queries per server.
    `traffic`: summed rate of the deliveries, each source once per server that reads it.
    `replication_factor`: traffic over the summed rate of the sources with at least one query;
    None when that sum is 0. `lower_bound`: traffic that no placement within the same balance
    constraint undercuts. `seconds`: time the algorithm took, by the wall clock.
    """

    assignment: SmallInts
    traffic: float
    replication_factor: float | None
    loads: Ints
    max_load: int
    lower_bound: float
    seconds: float


def measure(
    problem: PlacementProblem, assignment: SmallInts, caps: Ints, seconds: float
) -> PlacementPlan:
    """Measure an assignment; `caps` int64[k] are the most queries its algorithm allows."""
    loads = np.bincount(assignment, minlength=problem.servers).astype(np.int64)
    traffic = delivered_rate(problem, assignment)
    for array in (assignment, loads):
        array.setflags(write=False)
    return PlacementPlan(
        assignment=assignment,
        traffic=traffic,
        replication_factor=traffic / problem.live_rate if problem.live_rate else None,
        loads=loads,
        max_load=int(loads.max()),
        lower_bound=problem.lower_bound(caps),
        seconds=seconds,
    )


class OfflinePlacement(Parameters, ABC):
    """Base of the offline algorithms; a subclass assigns the queries."""

    def solve(self, problem: PlacementProblem, progress: Progress = silent) -> PlacementPlan:
        """Place all queries. Raises `Infeasible` when they do not fit."""
        problem.require_feasible()
        started = time.perf_counter()
        assignment = self.assign(problem, progress) if problem.queries else np.empty(0, np.int32)
        progress(1.0)
        return measure(problem, assignment, problem.caps, time.perf_counter() - started)

    @abstractmethod
    def assign(self, problem: PlacementProblem, progress: Progress) -> SmallInts:
        """Return the server of each query, int32[n]; there is at least one, and all fit."""


def delivered_rate(problem: PlacementProblem, assignment: SmallInts) -> float:
    """Return the traffic of an assignment: the sum over servers of f(Q_j), section 2."""
    owner = np.repeat(assignment.astype(np.int64), np.diff(problem.indptr))
    pairs = np.unique(owner * max(len(problem.rates), 1) + problem.indices)
    return math.fsum(problem.rates[pairs % max(len(problem.rates), 1)])
