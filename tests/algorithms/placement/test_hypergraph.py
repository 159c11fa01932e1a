"""Mt-KaHyPar as an optional planner: within every cap, good, and missed politely."""

import sys

import numpy as np
import pytest

from algorithms.errors import MissingDependency
from algorithms.lab.placement.workloads import bipartite
from algorithms.placement import hypergraph
from algorithms.placement.hypergraph import Hypergraph, repair_blocks
from algorithms.placement.offline import IncrementalCost
from algorithms.placement.problem import PlacementProblem
from tests.algorithms.placement.certificate import certify
from tests.algorithms.placement.instances import chain


def test_types_larger_than_a_server_are_cut() -> None:
    problem = PlacementProblem.from_lists([1.0, 1.0], [[0, 1]] * 100 + [[0]] * 20, 6, 0.0)
    plan = Hypergraph().solve(problem)
    certify(problem, plan, problem.caps)
    assert plan.loads.tolist() == [20] * 6


def test_it_beats_the_greedy_algorithms() -> None:
    problem = bipartite(3_000, 2, 2.0, 0).problem(30, 0.05)
    plan = Hypergraph().solve(problem)
    certify(problem, plan, problem.caps)
    assert plan.traffic < 0.95 * IncrementalCost().solve(problem).traffic


def test_the_deterministic_preset_repeats_itself() -> None:
    problem = bipartite(1_000, 2, 1.5, 0).problem(10, 0.05)
    first, second = (Hypergraph(preset="deterministic").solve(problem) for _ in range(2))
    assert first.assignment.tolist() == second.assignment.tolist()


def test_what_is_too_much_goes_where_there_is_room_and_is_split() -> None:
    kinds, sizes = np.array([0, 1, 2], np.int32), np.array([5, 4, 2])
    given_to = repair_blocks(kinds, sizes, np.array([0, 0, 1]), np.array([5, 3, 3]))
    loads = np.bincount(given_to[:, 1], given_to[:, 2], 3)
    by_kind = np.bincount(given_to[:, 0], given_to[:, 2])
    assert (loads <= [5, 3, 3]).all()
    assert by_kind.tolist() == [5, 4, 2]


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "mtkahypar", None)
    monkeypatch.setattr(hypergraph, "_POOL", {})
    with pytest.raises(MissingDependency, match="pip install mtkahypar"):
        Hypergraph().solve(chain())
