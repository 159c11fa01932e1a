"""Arrivals, lifetimes and server churn of sections 6.3.2 and 6.3.3, in discrete time steps."""

import numpy as np

from algorithms.errors import BadParameters
from algorithms.lab.placement.workloads.events import Events, Happening, in_order, of_kind
from algorithms.vocabulary import Floats, Ints, Seed


def poisson_arrivals(steps: int, mean: float, seed: Seed) -> Floats:
    """Return when queries arrive, float64[n], ascending: a Poisson number in each step 1..steps."""
    counts = np.random.default_rng(seed).poisson(mean, steps)
    return np.repeat(np.arange(1.0, steps + 1), counts)


def exponential_lifetimes(queries: int, mean: float, seed: Seed) -> Floats:
    """Return light-tailed lifetimes with this mean, float64[n]."""
    return np.random.default_rng(seed).exponential(mean, queries)


def pareto_lifetimes(queries: int, mean: float, shape: float, seed: Seed) -> Floats:
    """Return heavy-tailed lifetimes with this mean, float64[n].

    Raises `BadParameters` unless the shape is above 1: below, there is no mean.
    """
    if not shape > 1:
        raise BadParameters({"shape": [f"must be above 1, not {shape:g}"]})
    least = mean * (shape - 1) / shape
    return least * (1.0 + np.random.default_rng(seed).pareto(shape, queries))


def comings_and_goings(arrivals: Floats, lifetimes: Floats, until: float) -> Events:
    """Return arrival and departure of each query; who leaves after `until` stays.

    Query q arrives at `arrivals[q]` (ascending) and departs `lifetimes[q]` later.
    """
    numbers = np.arange(len(arrivals), dtype=np.int32)
    leaving = arrivals + lifetimes
    departed = leaving <= until
    return in_order(
        of_kind(Happening.ARRIVAL, numbers, arrivals),
        of_kind(Happening.DEPARTURE, numbers[departed], leaving[departed]),
    )


def server_churn(servers: int, steps: int, every: int, seed: Seed) -> Events:
    """Return arrivals and departures of servers: a trial after every `every` steps, section 6.3.3.

    With probability 1/2 a server is added, else a random one is removed.
    A new server takes the lowest number that is free. The last server is never removed: a server
    is added instead (the paper leaves it open). The numbers of the first servers are 0..k-1.

    Raises `BadParameters` where a count is below 1.
    """
    if min(servers, every) < 1:
        raise BadParameters({"servers" if servers < 1 else "every": ["must be at least 1"]})
    times = np.arange(1 + every, steps + 1, every, dtype=np.float64)
    chances = np.random.default_rng(seed).random((len(times), 2))
    kinds, numbers = _trials(servers, chances)
    return Events(kinds.astype(np.int8), numbers.astype(np.int32), times)


def _trials(servers: int, chances: Floats) -> tuple[Ints, Ints]:
    there = list(range(servers))
    kinds = np.empty(len(chances), np.int64)
    numbers = np.empty(len(chances), np.int64)
    for trial, (coin, which) in enumerate(chances.tolist()):
        if coin < 0.5 or len(there) == 1:  # noqa: PLR2004 - the paper's Bernoulli trial
            kinds[trial], numbers[trial] = Happening.SERVER_ADDED, _lowest_free(there)
            there.append(int(numbers[trial]))
        else:
            kinds[trial] = Happening.SERVER_REMOVED
            numbers[trial] = there.pop(int(which * len(there)))
    return kinds, numbers


def _lowest_free(taken: list[int]) -> int:
    there = set(taken)
    return next(number for number in range(len(taken) + 1) if number not in there)
