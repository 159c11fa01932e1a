"""Places reserved for known type frequencies."""

import pytest

from algorithms.lab.placement.workloads import bipartite
from algorithms.placement.offline import IncrementalCost
from algorithms.placement.online import LeastCost, Reservation
from tests.algorithms.placement.certificate import certify
from tests.algorithms.placement.instances import chain


def test_known_types_are_placed_as_the_offline_plan_has_them() -> None:
    """The chain in turn costs 8 online; with its types known it costs the optimum, 5."""
    plan = Reservation(nu=0.0, alpha=10.0).solve(chain())
    assert plan.traffic == IncrementalCost().solve(chain()).traffic == 5


def test_overflow_goes_where_least_cost_says() -> None:
    """Nothing known, nothing reserved: every query is overflow."""
    problem = bipartite(2_000, 2, 2.0, 0).problem(20, 0.05)
    found = Reservation(known=0.0).solve(problem).assignment
    assert found.tolist() == LeastCost().solve(problem).assignment.tolist()


@pytest.mark.parametrize("known", [0.3, 1.0])
@pytest.mark.parametrize("plan", ["ic", "mms"])
def test_the_balance_constraint_is_kept(known: float, plan: str) -> None:
    problem = bipartite(2_000, 2, 2.0, 0).problem(20, 0.05)
    algorithm = Reservation(known=known, plan=plan)
    certify(problem, algorithm.solve(problem), algorithm.promised_caps(problem))


def test_frequencies_help() -> None:
    problem = bipartite(5_000, 2, 1.2, 0).problem(20, 0.05)
    assert Reservation().solve(problem).traffic < LeastCost().solve(problem).traffic
