"""Every decision is the one that a plain scan of all servers takes."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.errors import BadProblem
from algorithms.lab.placement.formulas import expected_random_traffic
from algorithms.lab.placement.service import PlacementService
from algorithms.lab.placement.workloads import bipartite
from algorithms.placement.online import (
    LeastCost,
    LeastQueryTypes,
    LeastSource,
    OnlinePlacement,
    OnRand,
)
from algorithms.placement.problem import PlacementProblem
from tests.algorithms.placement.online.plain import PlainCluster, Query

RULES: dict[str, Callable[..., OnlinePlacement]] = {
    "least_cost": LeastCost,
    "rare": partial(LeastCost, prefer="rare"),
    "least_source": LeastSource,
    "least_qt": LeastQueryTypes,
}


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[float], list[Query]]:
    """Draw dyadic rates, so that sums are exact and ties common, and queries on them."""
    rates = draw(st.lists(st.integers(0, 6).map(lambda n: n / 4), min_size=1, max_size=7))
    query = st.sets(st.integers(0, len(rates) - 1), min_size=1, max_size=6)
    queries = draw(st.lists(query.map(lambda one: tuple(sorted(one))), max_size=40))
    return rates, queries


slacks = st.tuples(st.sampled_from([0.0, 0.05, 0.3]), st.sampled_from([0.0, 0.5, 1.0, 3.0]))


def plain(rates: list[float], slack: tuple[float, float], capacities: list[float]) -> PlainCluster:
    nu, alpha = (Fraction(str(number)) for number in slack)
    sizes = {server: Fraction(str(size)) for server, size in enumerate(capacities)}
    return PlainCluster([Fraction(rate) for rate in rates], nu, alpha, sizes)


@pytest.mark.parametrize("rule", RULES)
@given(drawn=rows(), slack=slacks, servers=st.integers(1, 7))
def test_arrivals_go_where_a_plain_scan_sends_them(
    rule: str, drawn: Any, slack: tuple[float, float], servers: int
) -> None:
    rates, queries = drawn
    problem = PlacementProblem.from_lists(rates, queries, servers, 0.0)
    found = RULES[rule](nu=slack[0], alpha=slack[1]).solve(problem).assignment.tolist()
    reference = plain(rates, slack, [1.0] * servers)
    assert found == [reference.place(rule, query) for query in queries]


@pytest.mark.parametrize("rule", RULES)
@given(
    drawn=rows(),
    slack=slacks,
    capacities=st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=1, max_size=5),
)
def test_unequal_servers_take_their_share(
    rule: str, drawn: Any, slack: tuple[float, float], capacities: list[float]
) -> None:
    rates, queries = drawn
    problem = PlacementProblem.from_lists(rates, queries, len(capacities), 0.0, capacities)
    found = RULES[rule](nu=slack[0], alpha=slack[1]).solve(problem).assignment.tolist()
    reference = plain(rates, slack, capacities)
    assert found == [reference.place(rule, query) for query in queries]


@pytest.mark.parametrize("rule", RULES)
@given(drawn=rows(), slack=slacks, data=st.data())
@settings(max_examples=60)
def test_service_decides_alike_while_queries_and_servers_come_and_go(
    rule: str, drawn: Any, slack: tuple[float, float], data: st.DataObject
) -> None:
    """Departures, additions and failures in any order; a failed server's queries by arrival."""
    rates, queries = drawn
    service = PlacementService(RULES[rule](nu=slack[0], alpha=slack[1]), 3, rates)
    reference = plain(rates, slack, [1.0] * 3)
    homes: dict[int, int] = {}
    for number, query in enumerate(queries):
        homes[number] = reference.place(rule, query)
        assert service.place(number, query) == homes[number]
        event = data.draw(st.sampled_from(["", "", "leave", "add", "fail"]))
        if event == "leave":
            gone = data.draw(st.sampled_from(sorted(homes)))
            reference.hosted[homes.pop(gone)].remove(queries[gone])
            service.remove(gone)
        elif event == "add":
            server = service.add_server()
            assert server == min(set(range(9 * len(queries))) - set(reference.hosted))
            reference.capacities[server] = Fraction(1)
            reference.hosted[server] = []
            # A plain scan goes by number.
            reference.hosted = dict(sorted(reference.hosted.items()))
        elif event == "fail" and len(reference.hosted) > 1:
            lost = data.draw(st.sampled_from(sorted(reference.hosted)))
            del reference.hosted[lost], reference.capacities[lost]
            orphans = [one for one, home in homes.items() if home == lost]
            moved = service.remove_server(lost)
            for one in orphans:
                homes[one] = reference.place(rule, queries[one])
            assert moved == {one: homes[one] for one in orphans}
        assert {one: service.server_of(one) for one in homes} == homes
    check_state(service, rates, queries, homes)


def check_state(
    service: PlacementService, rates: list[float], queries: list[Query], homes: dict[int, int]
) -> None:
    """Recompute loads and traffic of every server from who is where."""
    state = service.state
    for server in np.flatnonzero(state.board.active).tolist():
        mine = [queries[one] for one, home in homes.items() if home == server]
        assert state.loads[server] == len(mine)
        read = {source for query in mine for source in query}
        assert state.traffic[server] == sum(rates[source] for source in read)
    assert state.live == len(homes) == len(service)


def test_a_hundred_servers_need_more_than_one_word_of_bits() -> None:
    draw = np.random.default_rng(0)
    queries = [tuple(sorted(set(draw.zipf(1.6, 2) % 300))) for _ in range(3_000)]
    rows = [tuple(int(source) for source in query) for query in queries]
    for rule in ("least_cost", "rare"):
        problem = PlacementProblem.from_lists([1.0] * 300, rows, 130, 0.0)
        found = RULES[rule](nu=0.05, alpha=2.0).solve(problem).assignment.tolist()
        reference = plain([1.0] * 300, (0.05, 2.0), [1.0] * 130)
        assert found[:400] == [reference.place(rule, query) for query in rows[:400]]


def test_random_choices_spread_over_all_candidates() -> None:
    problem = bipartite(20_000, 2, 2.0, 0).problem(100, 0.05)
    plan = OnRand(seed=1).solve(problem)
    assert plan.loads.min() > 0.8 * 200
    assert plan.assignment.tolist() != OnRand(seed=2).solve(problem).assignment.tolist()


def test_random_placement_costs_what_equation_1_expects() -> None:
    """At the paper's defaults the balance constraint hardly binds: within 1 % over ten seeds."""
    problem = bipartite(100_000, 2, 2.0, 0).problem(100, 0.05)
    costs = [OnRand(seed=seed).solve(problem).traffic for seed in range(10)]
    assert np.mean(costs) == pytest.approx(expected_random_traffic(problem), rel=0.01)


def test_a_very_large_seed_is_refused() -> None:
    with pytest.raises(Exception, match="seed"):
        OnRand(seed=2**63)


def test_the_last_server_cannot_go_and_nothing_changes() -> None:
    service = PlacementService(LeastCost(), 1, [1.0])
    service.place("q", [0])
    with pytest.raises(BadProblem, match="last server"):
        service.remove_server(0)
    assert service.server_of("q") == 0


@pytest.mark.parametrize("name", ["place", "remove"])
def test_service_refuses_what_contradicts_it(name: str) -> None:
    service = PlacementService(LeastCost(), 2, [1.0])
    service.place("there", [0])
    with pytest.raises(BadProblem, match="query"):
        service.place("there", [0]) if name == "place" else service.remove("gone")
    assert len(service) == 1


@pytest.mark.parametrize("algorithm", [LeastCost(), OnRand(seed=5)], ids=["least_cost", "on_rand"])
def test_counts_grow_with_the_queries(algorithm: OnlinePlacement) -> None:
    """A state begins with little room; a thousand queries of three sources need more."""
    service = PlacementService(algorithm, 70, [1.0] * 500)
    draw = np.random.default_rng(1)
    rows = [tuple(draw.choice(500, 3, replace=False).tolist()) for _ in range(1_000)]
    homes = {number: service.place(number, row) for number, row in enumerate(rows)}
    check_state(service, [1.0] * 500, rows, homes)
    for number in range(1_000):
        service.remove(number)
    check_state(service, [1.0] * 500, rows, {})
    assert not service.state.board.readers.any()
