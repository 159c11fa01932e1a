import numpy as np
import pytest

from algorithms.lab.placement.formulas import expected_random_traffic
from algorithms.placement.problem import PlacementProblem
from tests.algorithms.placement.instances import chain, traffic


def test_equation_1_on_the_chain() -> None:
    assert expected_random_traffic(chain()) == pytest.approx(7.1875)


def test_it_is_the_mean_over_all_placements() -> None:
    """Also with rates and with servers of unequal capacity, which take queries in proportion."""
    problem = PlacementProblem.from_lists([5, 1, 3], [[0], [0, 1], [1, 2]], 2, 0.0, [1, 3])
    chances = [0.25, 0.75]
    mean = 0.0
    for number in range(8):
        servers = tuple(number >> query & 1 for query in range(3))
        mean += float(np.prod([chances[server] for server in servers])) * traffic(problem, servers)
    assert expected_random_traffic(problem) == pytest.approx(mean)
