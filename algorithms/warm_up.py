"""Compile the hot loops once, so that no later process pays for it: `python -m algorithms.warm_up`.

numba keeps compiled code beside the source, or in the user's cache directory where the source
cannot be written.
"""

import contextlib
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Final

import numpy as np

from algorithms.admission.packing import best_fit
from algorithms.admission.prediction import Predictions
from algorithms.admission.problem import AdmissionProblem
from algorithms.admission.strategies import Profile
from algorithms.errors import PlanningError
from algorithms.migration.future.planners import ForeseenProblem, Mtm, Sequence, SequenceProblem
from algorithms.migration.future.transitions import Transitions
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.schedule import schedule_transfers
from algorithms.migration.single_step import SingleStep
from algorithms.migration.ssm import ssm
from algorithms.ordering import MoveSet, Units, order_moves
from algorithms.partitioning.catalog import GROUPINGS
from algorithms.partitioning.grouping import Messages, Workers
from algorithms.partitioning.groupings.frequency_aware import FrequencyAware
from algorithms.partitioning.groupings.relocations import key_relocations
from algorithms.partitioning.problem import ListedStream, PartitioningProblem
from algorithms.partitioning.recommendation import Recommend, RecommendationProblem
from algorithms.partitioning.replay import ReplayProblem, SampledKeys
from algorithms.placement.online import LeastCost, OnlinePlacement, OnlineState
from algorithms.placement.online.service import PlacementService
from algorithms.placement.online.simulation import SimulatedCluster
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.workloads import bipartite
from algorithms.placement.workloads.dynamics import comings_and_goings
from algorithms.registry import PLACEMENT, algorithms
from algorithms.shedding.exact.planner import ExactPlanner
from algorithms.shedding.network import Network, Operator
from algorithms.shedding.planner import SHEDDING
from algorithms.shedding.problem import SheddingProblem
from algorithms.shedding.rungs import plan_rungs

# Two sources per query and one: the single-source algorithm has a loop of its own.
_INSTANCES = ([[0, 1], [0], [1, 2]], [[0], [1], [2]])
_RATES = (1.0, 2.0, 3.0)


def warm_up() -> None:
    """Run all compiled code on tiny problems, in as many processes as the machine has cores."""
    # Own interpreters: a copy of a process in which numba has compiled would keep its locks.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(len(_PARTS), os.cpu_count() or 1), context) as pool:
        for done in [pool.submit(part) for part in _PARTS]:
            done.result()


def _place() -> None:
    """Plan by every algorithm, and draw a workload."""
    for queries in _INSTANCES:
        problem = PlacementProblem.from_lists(_RATES, queries, 2, 0.5)
        for algorithm in algorithms(PLACEMENT):
            # Some refuse these problems, or need a package that is not installed.
            with contextlib.suppress(PlanningError):
                algorithm.solve(problem, algorithm.parameters())
    bipartite(4, 2, 1.0, 0)


def _order() -> None:
    """Order one transfer."""
    zero = np.zeros(1, np.int64)
    units = Units(np.array([0, 1]), zero, np.ones(1), zero)
    order_moves(MoveSet.from_units(_RATES, [1.0, 1.0], units, zero, zero + 1))


def _partition() -> None:
    """Assign a few messages by every key grouping, to equal and to unequal workers."""
    messages = Messages(np.arange(9, dtype=np.uint64))
    for info in GROUPINGS.values():
        grouping = info.parameters(weighted=True)
        for capacities in (None, (1.0, 2.0)):
            problem = PartitioningProblem(ListedStream(messages), Workers.of(2, capacities))
            grouping.solve(problem)
    stream = ReplayProblem(SampledKeys.of_counts(messages.keys, np.ones(9)), np.ones(2), 2.0)
    Recommend(messages=30).solve(RecommendationProblem(stream))
    FrequencyAware().split_keys(Workers.of(2), messages.keys[:1], np.ones(1))
    key_relocations(messages.keys, (0,), (0, 1))


def _plan_drops() -> None:
    """Plan drops for a split on one node, and on two nodes, by every algorithm."""
    for node in ("A", "B"):
        operators = (
            Operator("a", "A", 1.0, 1.0, ("i",)),
            Operator("b", "A", 1.0, 1.0, ("a",)),
            Operator("c", node, 1.0, 1.0, ("a",)),
        )
        nodes = dict.fromkeys(("A", node), 1.0)
        problem = SheddingProblem(Network(nodes, ("i",), operators, {"b": 1.0, "c": 1.0}), {"i": 1})
        for algorithm in algorithms(SHEDDING):
            algorithm.solve(problem, algorithm.parameters())
        (part,) = ExactPlanner(problem.network).parts
        part.all_flows(np.ones((1, 1)))
        part.cuts()
        plan_rungs(problem, 4.0)


def _admit() -> None:
    """Relieve one overloaded split node."""
    zero = np.zeros(1, np.int64)
    best_fit(zero, np.ones((1, 1)), np.ones((1, 1)), 1.0)
    rates = np.ones((2, 3))
    predictions = Predictions(rates[:, 0], rates, rates, np.zeros(2, np.bool_))
    owner = np.zeros(2, np.int64)
    Profile(foresee=True).solve(AdmissionProblem(1.5, np.array([1.5]), owner, predictions))


def _migrate() -> None:
    """Plan one migration and many, and the order of its transfers."""
    problem = MigrationProblem.of([1.0] * 6, [1.0] * 6, [0, 3], 3, 0.5)
    before = problem.work_before, problem.state_before, problem.bounds
    SingleStep().solve(problem)
    ssm(*before, float(problem.limits[0]), 3)
    schedule_transfers([[0, 1], [1, 0]])
    Sequence().solve(SequenceProblem(problem, (3, 2)))
    foreseen = ForeseenProblem(problem, Transitions.from_history([2, 3, 2, 3]))
    for method in ("exact", "learned"):
        Mtm(method=method, rounds=1, paths=1, horizon=1).solve(foreseen)


def _live() -> None:
    """Place and remove queries, and remove a server."""
    problem = PlacementProblem.from_lists(_RATES, _INSTANCES[0], 2, 0.5)
    events = comings_and_goings(np.arange(3.0), np.ones(3), 9.0)
    for algorithm in algorithms(PLACEMENT, "online"):
        online = algorithm.parameters()
        if isinstance(online, OnlinePlacement):
            SimulatedCluster(online, problem).apply_events(events, 0, len(events))
            service = PlacementService(online, 2, problem.rates)
            for query in range(3):
                service.place(query, problem.sources_of(query))
            service.remove(0)
            service.remove_server(0)
    LeastCost().choose(LeastCost().state_from(problem, [0, 1, 0]), [0])
    OnlineState.from_counts(1, _RATES, np.ones(1, np.int64), [(0, 0, 1)])


# What takes longest first. Parts share few compiled functions: what two compile is compiled twice.
_PARTS: Final[tuple[Callable[[], None], ...]] = (
    _place, _migrate, _live, _plan_drops, _partition, _order, _admit,
)  # fmt: skip


if __name__ == "__main__":
    warm_up()
