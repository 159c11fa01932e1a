"""Formulas of the paper on placement that no algorithm needs."""

import math

from algorithms.placement.problem import PlacementProblem


def alpha_from_epsilon(epsilon: float, servers: int, nu: float) -> float:
    """Return the absolute slack of section 5.2.2 for a chance of violation of at most epsilon.

    The switch from absolute to relative slack happens at n = alpha k / nu, and equation 10 asks
    for n >= k^2 log(1 / epsilon) / (2 nu^2) there, so alpha = k log(1 / epsilon) / (2 nu). (The
    union bound before it has log(k / epsilon); the paper drops the k, and so does this.) Raises
    `ValueError` outside 0 < epsilon < 1, nu > 0, k >= 1.
    """
    if not 0 < epsilon < 1 or not nu > 0 or servers < 1:
        raise ValueError("needs 0 < epsilon < 1, nu > 0 and at least one server")
    return servers * math.log(1 / epsilon) / (2 * nu)


def expected_random_traffic(problem: PlacementProblem) -> float:
    """Return the mean traffic of placing each query on a uniformly random server, equation 1.

    k w(s) (1 - (1 - 1 / k) ** n_s) summed over the sources, n_s queries reading source s. Servers
    of unequal capacity are taken in proportion to it. The balance constraint is left out.
    """
    shares = problem.capacities / problem.capacities.sum()
    read = problem.readers > 0
    rates, readers = problem.rates[read], problem.readers[read]
    return math.fsum(
        float((rates * (1.0 - (1.0 - share) ** readers)).sum()) for share in shares.tolist()
    )
