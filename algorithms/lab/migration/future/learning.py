"""Learning projected migration costs if partitionings are too many to list, beyond section 4.2.

Fitted policy iteration. Partitionings are visited by playing perturbed policies; each is priced by
playing the present policy on futures drawn from the transitions, the same futures for all that
have as many nodes, so that differences come from the partitionings; the prices are then fitted by
a sum over intervals of a value of their load, smooth in the load, and that is the next policy.
The rounds that do best on futures of their own are kept.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from algorithms.lab.migration.future.projection import BINS, Landscape, Projection
from algorithms.lab.migration.future.rollout import discounted_cost, interval_loads, play_policy
from algorithms.lab.migration.future.transitions import futures
from algorithms.random_numbers import new_state
from algorithms.vocabulary import Floats, Ints, Progress, silent

# Runs a function on each of the jobs, anywhere, in any order: `map`, or that of a Spark session.
Runner = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]


@dataclass(frozen=True)
class Effort:
    """The size of the learning: rounds, jobs in each round, and price_partitionings steps per job.

    `paths`, `horizon`: futures that price a partitioning, and how far they look.
    """

    rounds: int = 6
    jobs: int = 8
    steps: int = 160
    paths: int = 8
    horizon: int = 12


class Job(NamedTuple):
    """One independent part of a round: draw from `seed`, price with the futures of `common`."""

    landscape: Landscape
    values: Floats
    effort: Effort
    seed: int
    common: int


class Prices(NamedTuple):
    """Visited partitionings: their rows int64[s], interval loads float64[s, bins], prices."""

    rows: Ints
    loads: Floats
    costs: Floats


def learn_values(
    landscape: Landscape,
    effort: Effort | None = None,
    seed: int = 0,
    run: Runner = map,
    progress: Progress = silent,
) -> Projection:
    """Learn the values of interval loads; `progress` is called after each round."""
    chosen = effort or Effort()
    comparison = _Comparison(landscape, seed)
    single = np.zeros((len(landscape.transitions.counts), BINS))
    values, best = single, single
    base = least = comparison.cost(single)
    for done in range(chosen.rounds):
        jobs = [
            Job(landscape, values, chosen, hash_of(seed, done, number), hash_of(seed, done, -1))
            for number in range(chosen.jobs)
        ]
        fitted = _fit_values(landscape, list(run(price_partitionings, jobs)), values)
        # The first fit replaces nothing; later ones are averaged, as each is noisy.
        share = max(0.4, 1.0 / (1 + done))
        values = (1 - share) * values + share * fitted
        if (cost := comparison.cost(values)) < least:
            least, best = cost, values
        progress((done + 1) / chosen.rounds)
    gain = 1 - least / base if base else 0.0
    return Projection(landscape.key, best, gain)


def hash_of(seed: int, done: int, number: int) -> int:
    """Return a seed for one job of one round."""
    return (seed * 1_000_003 + done * 10_007 + number + 1) % 2**63


def price_partitionings(job: Job) -> Prices:
    """Visit partitionings with a perturbed policy and price each with the unperturbed policy."""
    landscape, effort = job.landscape, job.effort
    draw = np.random.default_rng(job.seed)
    counts, totals = landscape.transitions.counts, landscape.transitions.totals
    start = int(draw.integers(len(counts)))
    path = futures(totals, start, 1, effort.steps, new_state(int(draw.integers(2**62))))[0]
    spread = float(landscape.state.mean()) * draw.uniform(0.1, 1.3)
    noise = draw.normal(0.0, spread, job.values.shape)
    ground = landscape.ground
    visited, _ = play_policy(ground, even_cuts(landscape, start), path, job.values + noise)
    common = [
        futures(totals, row, effort.paths, effort.horizon, new_state(job.common + row))
        for row in range(len(counts))
    ]
    loads, costs = np.empty((len(path), BINS)), np.empty(len(path))
    for step, row in enumerate(path.tolist()):
        position = visited[step, : counts[row] + 1]
        loads[step] = interval_loads(ground.work_before, position, BINS, ground.scale)
        costs[step] = discounted_cost(ground, position, common[row], job.values)
    return Prices(path, loads, costs)


def even_cuts(landscape: Landscape, row: int) -> Ints:
    """Return a partitioning of about equal work into the row's number of nodes, int64[n + 1]."""
    before, nodes = landscape.ground.work_before, int(landscape.transitions.counts[row])
    wanted = before[-1] * np.arange(1, nodes) / nodes
    inner = np.searchsorted(before, wanted)
    return np.concatenate([[0], inner, [len(before) - 1]]).astype(np.int64)


def _fit_values(landscape: Landscape, samples: Sequence[Prices], values: Floats) -> Floats:
    """Fit the values of loads to the prices, by ridge regression with smooth neighbours."""
    rows = np.concatenate([prices.rows for prices in samples])
    loads = np.concatenate([prices.loads for prices in samples])
    costs = np.concatenate([prices.costs for prices in samples])
    smooth = np.vstack([0.3 * np.eye(BINS), 3.0 * np.diff(np.eye(BINS), axis=0)])
    fitted = values.copy()
    for row in range(len(landscape.transitions.counts)):
        of_row = rows == row
        if of_row.sum() <= BINS // 2:
            continue
        left = np.vstack([loads[of_row] - loads[of_row].mean(axis=0), smooth])
        right = np.concatenate([costs[of_row] - costs[of_row].mean(), np.zeros(len(smooth))])
        fitted[row] = np.linalg.lstsq(left, right, rcond=None)[0]
    return fitted


class _Comparison:
    """The costs of policies on the same long futures."""

    def __init__(self, landscape: Landscape, seed: int, paths: int = 24, steps: int = 120) -> None:
        self.landscape = landscape
        totals = landscape.transitions.totals
        rows = len(landscape.transitions.counts)
        self.paths = [
            futures(totals, path % rows, 1, steps, new_state(hash_of(seed, -1, path)))[0]
            for path in range(paths)
        ]

    def cost(self, values: Floats) -> float:
        ground = self.landscape.ground
        return math.fsum(
            play_policy(ground, even_cuts(self.landscape, int(path[0])), path, values)[1].sum()
            for path in self.paths
        )
