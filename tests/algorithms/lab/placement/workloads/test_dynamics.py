"""Arrivals, lifetimes and churn of sections 6.3.2 and 6.3.3."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.errors import BadParameters
from algorithms.lab.placement.workloads.dynamics import (
    comings_and_goings,
    exponential_lifetimes,
    pareto_lifetimes,
    poisson_arrivals,
    server_churn,
)
from algorithms.lab.placement.workloads.events import Happening, in_order

STEPS = 100_000


def test_arrivals_are_poisson() -> None:
    """Per step the mean and the variance are the rate; steps count from 1."""
    times = poisson_arrivals(STEPS, 1.5, seed=1)
    counts = np.bincount(times.astype(int), minlength=STEPS + 1)[1:]
    assert counts.mean() == pytest.approx(1.5, rel=0.02)
    assert counts.var() == pytest.approx(1.5, rel=0.03)
    assert (np.diff(times) >= 0).all()
    assert times[0] >= 1
    assert times[-1] <= STEPS


def test_lifetimes_have_the_mean_asked_for() -> None:
    """Exponential ones have it as deviation too; Pareto ones are never below their least."""
    light = exponential_lifetimes(STEPS, 250.0, seed=2)
    heavy = pareto_lifetimes(STEPS, 250.0, 3.0, seed=2)
    assert light.mean() == pytest.approx(250, rel=0.02)
    assert light.std() == pytest.approx(250, rel=0.02)
    assert heavy.mean() == pytest.approx(250, rel=0.03)
    assert heavy.min() >= 250 * 2 / 3


def test_a_pareto_law_without_a_mean_is_refused() -> None:
    """Shape 1 and below."""
    with pytest.raises(BadParameters, match="above 1"):
        pareto_lifetimes(10, 5.0, 1.0, seed=0)


def test_as_many_queries_live_as_arrivals_times_lifetime() -> None:
    """Little's law, which the paper uses to read figure 5(d)."""
    arrivals = poisson_arrivals(STEPS, 1.0, seed=3)
    lifetimes = exponential_lifetimes(len(arrivals), 2_000.0, seed=4)
    events = comings_and_goings(arrivals, lifetimes, STEPS)
    assert events.live()[len(events) // 2 :].mean() == pytest.approx(2_000, rel=0.05)


@given(
    lifetimes=st.lists(st.sampled_from([0.5, 1.0, 2.0, 7.5]), min_size=1, max_size=30),
    until=st.sampled_from([3.0, 10.0, np.inf]),
)
@settings(deadline=None)
def test_each_query_arrives_once_and_leaves_at_most_once_later(
    lifetimes: list[float], until: float
) -> None:
    """A place that frees up in a moment is free for what arrives in it."""
    arrivals = np.arange(1.0, len(lifetimes) + 1) // 2
    events = comings_and_goings(arrivals, np.array(lifetimes), until)
    seen: set[int] = set()
    for kind, query in zip(events.kinds.tolist(), events.subjects.tolist(), strict=True):
        if kind == Happening.ARRIVAL:
            assert query == len(seen)
            seen.add(query)
        else:
            assert kind == Happening.DEPARTURE
            assert query in seen
    assert len(seen) == len(lifetimes)
    leaving = int((arrivals + lifetimes <= until).sum())
    assert len(events) == len(lifetimes) + leaving
    order = list(zip(events.times.tolist(), events.kinds.tolist(), strict=True))
    assert order == sorted(order)


@given(servers=st.integers(1, 5), every=st.integers(1, 9), seed=st.integers(0, 2**32))
@settings(deadline=None)
def test_servers_come_and_go_and_one_always_stays(servers: int, every: int, seed: int) -> None:
    """Only a server that is there goes; a new one takes the lowest free number."""
    churn = server_churn(servers, 200, every, seed)
    there = set(range(servers))
    for kind, server in zip(churn.kinds.tolist(), churn.subjects.tolist(), strict=True):
        if kind == Happening.SERVER_ADDED:
            assert server == min(set(range(len(there) + 1)) - there)
            there.add(server)
        else:
            there.remove(server)
        assert there
    assert churn.times.tolist() == list(range(1 + every, 201, every))


def test_half_of_the_trials_add_a_server() -> None:
    """A Bernoulli trial each; from many servers the last one is never at stake."""
    churn = server_churn(1_000, 20_000, 2, seed=1)
    added = (churn.kinds == Happening.SERVER_ADDED).mean()
    assert len(churn) == 9_999
    assert added == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(("servers", "every", "field"), [(0, 5, "servers"), (5, 0, "every")])
def test_churn_needs_servers_and_steps(servers: int, every: int, field: str) -> None:
    """Nothing to remove, or no time between trials."""
    with pytest.raises(BadParameters) as caught:
        server_churn(servers, 10, every, seed=0)
    assert list(caught.value.fields) == [field]


def test_churn_of_a_moment_comes_between_departures_and_arrivals() -> None:
    """So a query that leaves is not moved first, and one that arrives finds the new server."""
    queries = comings_and_goings(np.array([1.0, 3.0]), np.array([2.0, 9.0]), 5.0)
    events = in_order(server_churn(2, 3, 2, seed=0), queries)
    moment = events.kinds[events.times == 3.0].tolist()
    assert moment[0] == Happening.DEPARTURE
    assert moment[1] in (Happening.SERVER_ADDED, Happening.SERVER_REMOVED)
    assert moment[2] == Happening.ARRIVAL
