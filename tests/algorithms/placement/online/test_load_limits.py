"""Arriving queries go to the server of least cost whose load is within the limits."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from algorithms.placement.online import LeastCostWithinLoads, LoadLimits, OnlineState

# Dyadic numbers and powers of two servers: sums and means are exact, and ties common.
shares = st.integers(0, 8).map(lambda n: n / 8)


@given(
    rates=st.lists(st.integers(0, 6).map(lambda n: n / 4), min_size=5, max_size=5),
    queries=st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=5), max_size=30),
    capacities=st.sampled_from([[4.0], [4.0, 8.0], [8.0, 4.0, 4.0, 16.0]]),
    limits=st.builds(LoadLimits, shares, shares),
)
def test_arrivals_go_where_a_scan_of_all_servers_sends_them(
    rates: list[float], queries: list[set[int]], capacities: list[float], limits: LoadLimits
) -> None:
    servers = len(capacities)
    state = OnlineState(servers, rates, capacities=capacities)
    placement = LeastCostWithinLoads(np.array(capacities), limits)
    hosted: list[list[set[int]]] = [[] for _ in capacities]

    def key(server: int, query: set[int]) -> tuple[float, ...]:
        read = [sum(rates[source] for source in set().union(*rows)) for rows in hosted]
        added = sum(rates[source] for source in query.difference(*hosted[server]))
        read[server] += added
        loads = [received / size for received, size in zip(read, capacities, strict=True)]
        above = loads[server] - sum(loads) / servers
        exceeded = max(0.0, above - limits.imbalance, loads[server] - limits.load)
        count = (len(hosted[server]) + 1) / capacities[server]
        return exceeded, added, loads[server], count, server

    for query in queries:
        expected = min(range(servers), key=lambda server: key(server, query))
        assert placement.place(state, query) == expected
        hosted[expected].append(query)
    assert state.loads.tolist() == [len(rows) for rows in hosted]


def test_without_rates_the_server_with_the_fewest_queries_takes_the_next() -> None:
    state = OnlineState(2, [0.0, 0.0])
    placement = LeastCostWithinLoads(np.array([10.0, 10.0]), LoadLimits(0.2, 1.0))
    assert [placement.place(state, [0]) for _ in range(4)] == [0, 1, 0, 1]
