"""The registered planner: a start of the paper's, made better within the time given."""

import pytest

from algorithms.lab.placement.workloads import bipartite
from algorithms.placement.offline import IncrementalCost, Mms
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.refine import Refined
from tests.algorithms.placement.certificate import certify


@pytest.mark.parametrize("start", ["ic", "mms", "better", "least_cost"])
def test_it_is_better_than_its_start(start: str) -> None:
    problem = bipartite(3_000, 2, 2.0, 0).problem(30, 0.05)
    plan = Refined(start=start, sweeps=100).solve(problem)
    certify(problem, plan, problem.caps)
    greedy = {"ic": IncrementalCost().solve(problem), "mms": Mms().solve(problem)}
    for name, begun in greedy.items():
        if start in (name, "better", "least_cost"):
            assert plan.traffic < 0.95 * begun.traffic


def test_without_time_it_is_its_start_or_better() -> None:
    problem = bipartite(2_000, 2, 1.5, 0).problem(20, 0.05)
    plan = Refined(seconds=0.0, start="ic").solve(problem)
    assert plan.traffic <= IncrementalCost().solve(problem).traffic


@pytest.mark.parametrize(
    ("queries", "capacities"), [([[0]] * 5, None), ([[0, 1], [0], [1]] * 3, [1.0, 0.5, 2.0])]
)
def test_it_has_a_start_for_every_problem(
    queries: list[list[int]], capacities: list[float] | None
) -> None:
    """Single sources, and no slack on unequal servers, where LeastCost may not keep the caps."""
    servers = len(capacities) if capacities else 2
    problem = PlacementProblem.from_lists([1.0, 2.0], queries, servers, 0.25, capacities)
    certify(problem, Refined().solve(problem), problem.caps)


def test_progress_rises_to_one_and_can_stop_a_run() -> None:
    problem = bipartite(500, 2, 1.5, 0).problem(5, 0.05)
    heard: list[float] = []
    Refined(sweeps=50).solve(problem, heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 1

    def cancel(share: float) -> None:
        if share > 0.3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        Refined(sweeps=50).solve(problem, cancel)
