"""Optimal migration sequences (OMS), section 4.1: the future numbers of nodes are known.

Figure 5 tries every partitioning after the first migration and goes on from there by recursion.
What follows depends on the partitioning alone (lemma 4.1), so each is priced once, last migration
first; the last one is the single step.
"""

from collections.abc import Sequence

import numpy as np

from algorithms.migration.future.exact import MOST_PAIRS
from algorithms.migration.future.matching import costs_between
from algorithms.migration.future.partitionings import partitionings
from algorithms.vocabulary import Floats, Ints, Progress, silent


def optimal_sequence(
    work_before: Floats,
    kept: Floats,
    present: Ints,
    nodes: Sequence[int],
    taus: Sequence[float],
    progress: Progress = silent,
) -> list[Ints]:
    """Return the cuts after each migration, with the least bytes moved in all.

    `present` int64[n + 1]; `nodes`, `taus`: of each migration. Raises `TooLarge` where there are
    too many partitionings. A step without any partitioning must be refused before.
    """
    total = float(work_before[-1])
    most = int(np.sqrt(MOST_PAIRS))
    choices = [
        partitionings(work_before, (1 + tau) * total / count, count, most)
        for count, tau in zip(nodes, taus, strict=True)
    ]
    after = np.zeros(len(choices[-1]))
    following: list[Ints] = []
    for step in range(len(choices) - 1, 0, -1):
        costs = costs_between(kept, choices[step - 1], choices[step]) + after
        following.insert(0, costs.argmin(axis=1))
        after = costs.min(axis=1)
        progress((len(choices) - step) / len(choices))
    choice = int((costs_between(kept, present[None, :], choices[0])[0] + after).argmin())
    sequence = [choices[0][choice]]
    for step, best in enumerate(following):
        choice = int(best[choice])
        sequence.append(choices[step + 1][choice])
    progress(1.0)
    return sequence
