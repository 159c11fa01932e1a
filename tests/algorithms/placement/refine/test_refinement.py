"""Refinement takes any placement within the caps and never makes it worse."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from algorithms.errors import BadProblem
from algorithms.lab.placement.workloads import bipartite
from algorithms.placement.offline import IncrementalCost, OffRand
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.refine import refine
from algorithms.placement.result import PlacementPlan, measure
from algorithms.vocabulary import SmallInts
from tests.algorithms.placement.certificate import certify
from tests.algorithms.placement.instances import chain, optimum, pairs, problems


def refined(problem: PlacementProblem, start: SmallInts, seed: int = 0) -> PlacementPlan:
    """Return the refined placement, measured and certified from scratch."""
    assignment = refine(problem, start, sweeps=200, seed=seed)
    plan = measure(problem, assignment, problem.caps, 0.0)
    certify(problem, plan, problem.caps)
    return plan


@given(problems(), st.integers(0, 3))
@settings(deadline=None)
def test_it_never_returns_worse_than_it_was_given(problem: PlacementProblem, seed: int) -> None:
    assume(problem.caps.sum() >= problem.queries)
    start = OffRand(seed).solve(problem)
    assert refined(problem, start.assignment, seed=seed).traffic <= start.traffic


@given(problems(), st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=5, max_size=5))
@settings(deadline=None)
def test_servers_of_unequal_capacity_keep_their_own_bound(
    problem: PlacementProblem, capacities: list[float]
) -> None:
    """The certificate in `refined` fails when a small server is given a large one's share."""
    unequal = PlacementProblem.from_arrays(
        problem.rates,
        problem.indptr,
        problem.indices,
        problem.servers,
        problem.nu,
        capacities[: problem.servers],
    )
    assume(unequal.caps.sum() >= unequal.queries)
    start = IncrementalCost().solve(unequal)
    assert refined(unequal, start.assignment).traffic <= start.traffic


@pytest.mark.parametrize("problem", [chain(), pairs()], ids=["chain", "pairs"])
def test_small_cases_reach_their_optimum(problem: PlacementProblem) -> None:
    """From wherever it starts: the greedy algorithms stop at 15 where 13 is possible (pairs)."""
    best = optimum(problem, problem.caps)
    found = [refined(problem, OffRand(seed).solve(problem).assignment) for seed in range(10)]
    assert [plan.traffic for plan in found] == [best] * 10


def test_a_random_instance_is_made_much_better() -> None:
    problem = bipartite(3_000, 2, 2.0, 0).problem(30, 0.05)
    start = IncrementalCost().solve(problem)
    assert refined(problem, start.assignment).traffic < 0.9 * start.traffic


def test_the_same_seed_gives_the_same_plan() -> None:
    problem = bipartite(500, 2, 1.5, 0).problem(10, 0.05)
    start = IncrementalCost().solve(problem).assignment
    runs = [refine(problem, start, sweeps=50, seconds=600, seed=seed) for seed in (7, 7, 8)]
    assert runs[0].tolist() == runs[1].tolist()
    assert runs[0].tolist() != runs[2].tolist()


def test_what_it_was_given_stays_as_it_was() -> None:
    start = OffRand(1).solve(chain()).assignment
    before = start.tolist()
    refine(chain(), start)
    assert start.tolist() == before


def test_the_time_is_bounded() -> None:
    """A million sweeps would take hours: with no time left, one stage per schedule is tried."""
    problem = bipartite(3_000, 2, 2.0, 0).problem(30, 0.05)
    start = IncrementalCost().solve(problem)
    heard: list[float] = []
    plan = refine(problem, start.assignment, sweeps=1_000_000, seconds=0.0, progress=heard.append)
    assert measure(problem, plan, problem.caps, 0.0).traffic <= start.traffic
    assert len(heard) <= 4


def test_progress_rises_to_one() -> None:
    heard: list[float] = []
    refine(pairs(), OffRand().solve(pairs()).assignment, progress=heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == pytest.approx(1)


def test_progress_can_stop_a_run() -> None:
    def cancel(_: float) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        refine(chain(), IncrementalCost().solve(chain()).assignment, progress=cancel)


@pytest.mark.parametrize(
    ("assignment", "where"),
    [
        ([0] * 7, "assignment"),
        ([0] * 7 + [2], "assignment[7]"),
        ([0] * 8, "assignment"),
        ([0.0] * 8, "assignment"),
    ],
    ids=["too few", "unknown server", "over the cap", "not whole"],
)
def test_a_start_that_is_none_is_refused(assignment: list[int], where: str) -> None:
    with pytest.raises(BadProblem) as refusal:
        refine(chain(), np.array(assignment))
    assert refusal.value.where == where


@pytest.mark.parametrize("servers", [1, 3])
def test_nothing_to_move_is_nothing_moved(servers: int) -> None:
    for queries in ([], [[0]]):
        problem = PlacementProblem.from_lists([1.0], queries, servers, 2.0)
        assert refine(problem, np.zeros(len(queries), np.int32)).tolist() == [0] * len(queries)
