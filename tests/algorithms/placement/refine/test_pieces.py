from hypothesis import assume, given

from algorithms.placement.offline import IncrementalCost, OffRand
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.refine.annealing import assignment_of, cut
from algorithms.placement.result import measure
from tests.algorithms.placement.instances import problems


@given(problems())
def test_a_placement_survives_being_cut(problem: PlacementProblem) -> None:
    """Queries of one type may trade places; loads and traffic may not change."""
    assume(problem.caps.sum() >= problem.queries)
    plan = OffRand().solve(problem)
    pieces = cut(problem, plan.assignment)
    again = measure(problem, assignment_of(problem, pieces), problem.caps, 0.0)
    assert again.loads.tolist() == plan.loads.tolist()
    assert again.traffic == plan.traffic


def test_large_types_are_cut_into_even_pieces() -> None:
    """A server holds 664: pieces of at most ten, so that types can be regrouped."""
    problem = PlacementProblem.from_lists([1.0, 1.0], [[0]] * 633 + [[1]] * 633, 2, 0.05)
    pieces = cut(problem, IncrementalCost().solve(problem).assignment)
    assert pieces.sizes.tolist() == ([10] * 57 + [9] * 7) * 2
