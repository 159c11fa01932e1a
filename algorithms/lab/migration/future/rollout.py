"""The cost of a policy on futures drawn from the transitions."""

import numpy as np

from algorithms.compiled import compiled
from algorithms.lab.migration.future.interval_values import best_cuts
from algorithms.lab.migration.future.matching import retained_bytes
from algorithms.lab.migration.future.projection import Ground
from algorithms.vocabulary import Floats, Ints


@compiled
def discounted_cost(ground: Ground, cuts: Ints, futures: Ints, values: Floats) -> float:
    """Return the mean discounted bytes moved after `cuts`, over the given futures.

    `futures` int64[paths, steps] of rows of the transitions; `values` float64[c, bins]: the policy
    takes the least of bytes plus gamma times these.
    """
    total = 0.0
    for path in range(len(futures)):
        discount = 1.0
        for cost in play_policy(ground, cuts, futures[path], values)[1]:
            total += discount * cost
            discount *= ground.gamma
    return total / len(futures)


@compiled
def play_policy(ground: Ground, cuts: Ints, future: Ints, values: Floats) -> tuple[Ints, Floats]:
    """Follow the policy on one future: the cuts after each step and the bytes it moved.

    int64[steps, largest count + 1], of which row t has `counts[future[t]] + 1` that count.
    """
    work_before, kept, limits, counts, scale, gamma = ground
    visited = np.zeros((len(future), counts.max() + 1), np.int64)
    costs = np.empty(len(future))
    present = cuts
    for step, row in enumerate(future):
        after = best_cuts(
            work_before, kept, present, limits[row], counts[row], gamma * values[row], scale
        )
        costs[step] = kept[-1] - retained_bytes(kept, present, after)
        visited[step, : len(after)] = after
        present = after
    return visited, costs


@compiled
def interval_loads(work_before: Floats, cuts: Ints, bins: int, scale: float) -> Floats:
    """Return the weight of each knot's value, summed over the intervals, float64[bins]."""
    weights = np.zeros(bins)
    for part in range(len(cuts) - 1):
        position = (work_before[cuts[part + 1]] - work_before[cuts[part]]) * scale
        low = min(int(position), bins - 2)
        share = min(position - low, 1.0)
        weights[low] += 1.0 - share
        weights[low + 1] += share
    return weights
