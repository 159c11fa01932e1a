"""Compile the hot loops once, so that no later process pays for it: `python -m algorithms.warm_up`.

numba keeps compiled code beside the source, or in the user's cache directory where the source
cannot be written.
"""

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Final

import numpy as np

from algorithms.admission.packing import best_fit
from algorithms.admission.prediction import Predictions
from algorithms.admission.problem import AdmissionProblem
from algorithms.admission.strategies import Profile
from algorithms.errors import PlanningError
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.single_step import SingleStep
from algorithms.ordering import MoveSet, WorkUnits, order_moves
from algorithms.partitioning.catalog import GROUPINGS
from algorithms.partitioning.grouping import Messages, Workers
from algorithms.partitioning.groupings.frequency_aware import FrequencyAware
from algorithms.partitioning.recommendation import Recommend, RecommendationProblem
from algorithms.partitioning.replay import ReplayProblem, SampledKeys
from algorithms.placement.improve import Improve, ImproveProblem, MeasureLimits
from algorithms.placement.online import LeastCostWithinLoads, LoadLimits, OnlineState
from algorithms.placement.planner import FROM_NOTHING
from algorithms.placement.problem import PlacementProblem
from algorithms.shedding.lp import Lp
from algorithms.shedding.network import Network, Operator
from algorithms.shedding.problem import SheddingProblem
from algorithms.shedding.rungs import plan_rungs

# Two sources per query and one: the single-source algorithm has a loop of its own.
_INSTANCES = ([[0, 1], [0], [1, 2]], [[0], [1], [2]])
_RATES = (1.0, 2.0, 3.0)


def warm_up(parts: Sequence[Callable[[], None]]) -> None:
    """Run compiled code on tiny problems, in as many processes as the machine has cores."""
    # Own interpreters: a copy of a process in which numba has compiled would keep its locks.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(len(parts), os.cpu_count() or 1), context) as pool:
        for done in [pool.submit(part) for part in parts]:
            done.result()


def _place() -> None:
    """Plan by every algorithm."""
    for queries in _INSTANCES:
        problem = PlacementProblem.from_lists(_RATES, queries, 2, 0.5)
        for algorithm in FROM_NOTHING:
            # Some refuse these problems, or need a package that is not installed.
            with contextlib.suppress(PlanningError):
                algorithm.solve(problem, algorithm.parameters())
    Improve().solve(
        ImproveProblem.from_arrays([1.0], [0, 1], [0], [0], [1.0, 1.0], MeasureLimits())
    )


def _order() -> None:
    """Order one transfer."""
    zero = np.zeros(1, np.int64)
    units = WorkUnits(np.array([0, 1]), zero, zero)
    order_moves(MoveSet.from_units(_RATES, [1.0, 1.0], units, zero, zero + 1))


def _partition() -> None:
    """Assign a few messages by every key grouping, to equal and to unequal workers."""
    messages = Messages(np.arange(9, dtype=np.uint64))
    for info in GROUPINGS.values():
        grouping = info.parameters(weighted=True)
        for capacities in (None, (1.0, 2.0)):
            grouping.route(grouping.start(Workers.of(2, capacities)), messages)
    stream = ReplayProblem(SampledKeys.of_counts(messages.keys, np.ones(9)), np.ones(2), 2.0)
    Recommend(messages=30).solve(RecommendationProblem(stream))
    FrequencyAware().split_keys(Workers.of(2), messages.keys[:1], np.ones(1))


def _plan_drops() -> None:
    """Plan drops."""
    for problem in shedding_problems():
        Lp().solve(problem)
        plan_rungs(problem, 4.0)


def shedding_problems() -> Iterator[SheddingProblem]:
    """Yield the problem of a split on one node, and on two nodes."""
    for node in ("A", "B"):
        operators = (
            Operator("a", "A", 1.0, 1.0, ("i",)),
            Operator("b", "A", 1.0, 1.0, ("a",)),
            Operator("c", node, 1.0, 1.0, ("a",)),
        )
        nodes = dict.fromkeys(("A", node), 1.0)
        yield SheddingProblem(Network(nodes, ("i",), operators, {"b": 1.0, "c": 1.0}), {"i": 1})


def _admit() -> None:
    """Relieve one overloaded split node."""
    zero = np.zeros(1, np.int64)
    best_fit(zero, np.ones((1, 1)), np.ones((1, 1)), 1.0)
    rates = np.ones((2, 3))
    predictions = Predictions(rates[:, 0], rates, rates, np.zeros(2, np.bool_))
    owner = np.zeros(2, np.int64)
    Profile(foresee=True).solve(AdmissionProblem(1.5, np.array([1.5]), owner, predictions))


def _migrate() -> None:
    """Plan one migration."""
    SingleStep().solve(MigrationProblem.of([1.0] * 6, [1.0] * 6, [0, 3], 3, 0.5))


def _live() -> None:
    """Place a query, and count the readers of a server."""
    state = OnlineState.from_counts(2, _RATES, np.array([1, 0]), [(0, 0, 1)])
    LeastCostWithinLoads(np.ones(2), LoadLimits(0.2, 1.0)).place(state, [0])


# What takes longest first. Parts share few compiled functions: what two compile is compiled twice.
_PARTS: Final[tuple[Callable[[], None], ...]] = (
    _place, _plan_drops, _live, _partition, _migrate, _order, _admit,
)  # fmt: skip


if __name__ == "__main__":
    warm_up(_PARTS)
