"""The optimum by trying every partitioning and every assignment, and random small problems."""

import numpy as np

from algorithms.compiled import compiled
from algorithms.migration.problem import MigrationProblem
from algorithms.vocabulary import Floats, Ints


def retained_bytes(problem: MigrationProblem) -> float:
    """Return the most bytes that can stay, minus infinity where nothing is feasible."""
    nodes = len(problem.capacities)
    bounds = np.concatenate([problem.bounds, np.full(nodes - problem.present, problem.tasks)])
    return float(
        _most_kept(
            np.array(problem.work_before),
            np.array(problem.state_before),
            bounds,
            # A node that must leave may not even have an empty interval.
            np.where(problem.capacities > 0, problem.limits, -1.0),
            problem.nodes,
        )
    )


@compiled
def _most_kept(work: Floats, state: Floats, bounds: Ints, limits: Floats, parts: int) -> float:
    tasks = len(work) - 1
    cuts = np.zeros(parts + 1, np.int64)
    cuts[parts] = tasks
    best = -np.inf
    while True:
        best = max(best, _best_assignment(work, state, bounds, limits, cuts))
        # The next non-falling sequence of cuts.
        at = parts - 1
        while at > 0 and cuts[at] == tasks:
            at -= 1
        if at <= 0:
            return best
        cuts[at:parts] = cuts[at] + 1


@compiled
def _best_assignment(
    work: Floats, state: Floats, bounds: Ints, limits: Floats, cuts: Ints
) -> float:
    """Match intervals with nodes: the best over all sets of nodes that the first intervals use."""
    nodes, parts = len(limits), len(cuts) - 1
    kept = np.full(1 << nodes, -np.inf)
    kept[0] = 0.0
    for part in range(parts):
        first, stop = cuts[part], cuts[part + 1]
        after = np.full(1 << nodes, -np.inf)
        for used in range(1 << nodes):
            if kept[used] == -np.inf:
                continue
            for node in range(nodes):
                if used >> node & 1 or work[stop] - work[first] > limits[node] * (1 + 1e-9):
                    continue
                low, high = max(first, bounds[node]), min(stop, bounds[node + 1])
                stays = state[high] - state[low] if high > low else 0.0
                with_node = used | 1 << node
                after[with_node] = max(after[with_node], kept[used] + stays)
        kept = after
    return float(kept.max())


def drawn(draw: np.random.Generator, *, unequal: bool = False, tasks: int = 12) -> MigrationProblem:
    """Draw a small problem, often with empty intervals, idle tasks and a tight tau."""
    count = int(draw.integers(1, tasks + 1))
    present, nodes = int(draw.integers(1, 6)), int(draw.integers(1, min(count, 5) + 1))
    starts = np.concatenate([[0], np.sort(draw.integers(0, count + 1, present - 1))])
    capacities = None
    if unequal:
        capacities = np.zeros(max(present, nodes))
        staying = draw.choice(len(capacities), nodes, replace=False)
        capacities[staying] = draw.choice([1.0, 2.0, 3.0], nodes)
    return MigrationProblem.of(
        draw.integers(0, 6, count),
        draw.integers(0, 9, count),
        starts,
        nodes,
        float(draw.choice([0.0, 0.1, 0.4, 1.2, 3.0])),
        capacities,
    )
