"""Small named instances, a way to draw more, and an exhaustive search for their optimum."""

import itertools

from hypothesis import strategies as st

from algorithms.placement.problem import PlacementProblem
from algorithms.vocabulary import Ints

# A, B, C, D are sources 0 to 3.
CHAIN_QUERIES = [[0, 1]] * 3 + [[1, 2]] * 2 + [[2, 3]] * 2 + [[0]]
FIGURE_1_QUERIES = [[0]] * 5 + [[1]] * 3 + [[2]] * 3 + [[3]]
PAIRS_QUERIES = [[0], [1], [0, 1], [2], [0, 2], [1, 2]]


def chain(servers: int = 2, nu: float = 0.0) -> PlacementProblem:
    """Return AB three times, BC twice, CD twice and A, at unit rates."""
    return PlacementProblem.from_lists([1, 1, 1, 1], CHAIN_QUERIES, servers, nu)


def figure_1() -> PlacementProblem:
    """Return 5, 3, 3 and 1 single-source queries at rates 1, 4, 2 and 8 for three servers."""
    return PlacementProblem.from_lists([1, 4, 2, 8], FIGURE_1_QUERIES, 3, 0.0)


def pairs() -> PlacementProblem:
    """Return all single and paired queries on three sources of rates 5, 1 and 3."""
    return PlacementProblem.from_lists([5, 1, 3], PAIRS_QUERIES, 2, 0.0)


def crowded() -> PlacementProblem:
    """Return ten queries for three servers without slack: nine places."""
    return PlacementProblem.from_lists([1.0], [[0]] * 10, 3, 0.0)


def optimum(problem: PlacementProblem, caps: Ints) -> float:
    """Return the least traffic of any placement with at most `caps[j]` queries on server j."""
    return min(
        traffic(problem, servers)
        for servers in itertools.product(range(problem.servers), repeat=problem.queries)
        if all(servers.count(server) <= caps[server] for server in set(servers))
    )


def traffic(problem: PlacementProblem, servers: tuple[int, ...]) -> float:
    """Return the traffic of a placement by the definition in section 2."""
    delivered = {
        (server, int(source))
        for query, server in enumerate(servers)
        for source in problem.sources_of(query)
    }
    return sum(float(problem.rates[source]) for _, source in delivered)


@st.composite
def problems(
    draw: st.DrawFn, queries: int = 24, servers: int = 5, *, unequal: bool = False
) -> PlacementProblem:
    """Draw a problem; rates are quarters, so that sums are exact and ties are common."""
    rates = draw(st.lists(st.integers(0, 12).map(lambda n: n / 4), min_size=1, max_size=6))
    query = st.sets(st.integers(0, len(rates) - 1), min_size=1, max_size=4)
    rows = draw(st.lists(query, max_size=queries))
    slack = draw(st.sampled_from([0.0, 0.05, 0.3, 1.0, 5.0]))
    count = draw(st.integers(1, servers))
    sizes = st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=count, max_size=count)
    capacities = draw(sizes) if unequal else None
    round_up = draw(st.booleans())
    return PlacementProblem.from_lists(rates, rows, count, slack, capacities, round_up=round_up)


def first_sources(problem: PlacementProblem) -> PlacementProblem:
    """Return the same queries, each reading the first of its sources only."""
    firsts = [[int(problem.sources_of(query)[0])] for query in range(problem.queries)]
    return PlacementProblem.from_lists(
        problem.rates,
        firsts,
        problem.servers,
        problem.nu,
        problem.capacities,
        round_up=problem.round_up,
    )
