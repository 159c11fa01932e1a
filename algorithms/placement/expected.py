"""The expected traffic of a random placement: equation 1 of section 4, also with rates."""

import math

from algorithms.placement.problem import PlacementProblem


def expected_random_traffic(problem: PlacementProblem) -> float:
    """Return the mean traffic of placing each query on a uniformly random server.

    k w(s) (1 - (1 - 1 / k) ** n_s) summed over the sources, n_s queries reading source s. Servers
    of unequal capacity are taken in proportion to it. The balance constraint is left out.
    """
    shares = problem.capacities / problem.capacities.sum()
    read = problem.readers > 0
    rates, readers = problem.rates[read], problem.readers[read]
    return math.fsum(
        float((rates * (1.0 - (1.0 - share) ** readers)).sum()) for share in shares.tolist()
    )
