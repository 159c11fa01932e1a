"""All partitionings of the tasks into intervals within a limit, and the optimal sequences of them.

Section 4.1, the future numbers of nodes are known: figure 5 tries every partitioning after the
first migration and goes on from there by recursion. What follows depends on the partitioning alone
(lemma 4.1), so each is priced once, last migration first; the last one is the single step.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from algorithms.compiled import compiled
from algorithms.errors import TooLarge
from algorithms.lab.migration.future.matching import costs_between
from algorithms.migration.limits import lower_bounds
from algorithms.vocabulary import Floats, Ints, Progress, silent

# Pairs of partitionings whose costs are kept: 400 MB.
MOST_PAIRS: Final = 50_000_000


def count_partitionings(work_before: Floats, limit: float, parts: int) -> int:
    """Return the number of partitionings into `parts` intervals, perhaps empty, within the limit.

    Exact at any size: 64 unit tasks on 8 nodes at tau = 1.2 have 283,943,537.
    """
    lowest = lower_bounds(work_before, limit).tolist()
    ways = [1] + [0] * (len(lowest) - 1)
    for _ in range(parts):
        before = [0]
        for number in ways:
            before.append(before[-1] + number)
        ways = [before[x + 1] - before[low] for x, low in enumerate(lowest)]
    return ways[-1]


def partitionings(work_before: Floats, limit: float, parts: int, most: int) -> Ints:
    """Return every partitioning as a row of cuts, int64[K, parts + 1], in ascending order.

    Raises `TooLarge`, which names their number, where that is more than `most`.
    """
    count = count_partitionings(work_before, limit, parts)
    if count > most:
        raise TooLarge(
            f"{len(work_before) - 1} tasks have {count:,} partitionings into {parts} intervals; "
            f"at most {most:,} can be listed"
        )
    return _list_partitionings(lower_bounds(work_before, limit), parts, count)


@compiled
def _list_partitionings(lowest: Ints, parts: int, count: int) -> Ints:
    """Enumerate the cuts like an odometer; the earliest begin of the rest cuts off dead ends."""
    tasks = len(lowest) - 1
    earliest = np.full(parts + 1, tasks, np.int64)
    for left in range(1, parts + 1):
        earliest[left] = lowest[earliest[left - 1]]
    rows = np.empty((count, parts + 1), np.int64)
    cuts = np.zeros(parts + 1, np.int64)
    number, part = 0, 1
    cuts[1] = max(0, earliest[parts - 1])
    while part > 0:
        x = cuts[part]
        if x > tasks or lowest[x] > cuts[part - 1]:
            part -= 1
            cuts[part] += 1
        elif part == parts:
            rows[number] = cuts
            number += 1
            part -= 1
            cuts[part] += 1
        else:
            part += 1
            cuts[part] = max(cuts[part - 1], earliest[parts - part])
    return rows


def optimal_sequence(
    work_before: Floats,
    kept: Floats,
    present: Ints,
    nodes: Sequence[int],
    tau: float,
    progress: Progress = silent,
) -> list[Ints]:
    """Return the cuts after each migration, with the least bytes moved in all.

    `present` int64[n + 1]; `nodes`: of each migration. Raises `TooLarge` where there are
    too many partitionings. A step without any partitioning must be refused before.
    """
    total = float(work_before[-1])
    most = int(np.sqrt(MOST_PAIRS))
    choices = [
        partitionings(work_before, (1 + tau) * total / count, count, most) for count in nodes
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
