"""The single step with a price on what follows: section 4.2 for values that add up.

The projected cost of a partitioning is taken as a sum over its intervals of a value that depends
on the interval's load. The least of bytes moved now plus gamma times that is then found by the
same pass over the positions as the single step alone (`single_step.py`), at the price of trying
every beginning of each interval: O((1 + tau) m^2) in all.
"""

import numpy as np

from algorithms.compiled import compiled, inlined
from algorithms.migration.windows import lower_bounds, owners_of
from algorithms.vocabulary import Floats, Ints

_NEVER = -np.inf


@compiled
def value_at(values: Floats, load: float, scale: float) -> float:
    """Return the value of a load, linear between the knots at 0, 1, 2, ... times 1 / scale."""
    at = load * scale
    low = min(int(at), len(values) - 2)
    share = min(at - low, 1.0)
    return float(values[low] * (1.0 - share) + values[low + 1] * share)


@compiled
def best_cuts(
    work: Floats,
    kept: Floats,
    present: Ints,
    limit: float,
    parts: int,
    values: Floats,
    scale: float,
) -> Ints:
    """Return the partitioning of least bytes moved plus summed values, int64[parts + 1].

    `work`, `kept` float64[m + 1]: work and bytes before each position; `present` int64[n + 1]
    cuts; `values` float64[bins] in bytes, see `value_at`. There must be a partitioning within the
    limit.
    """
    tasks = len(work) - 1
    lowest = lower_bounds(work, limit)
    owner = owners_of(present, tasks)
    old, new = np.full((2, tasks + 1), _NEVER), np.empty((2, tasks + 1))
    # Twice where the part that ends at x begins, plus g's u there (see single_step.py).
    choices = np.empty((parts, 2, tasks + 1), np.int64)
    old[:, 0] = 0.0
    for part in range(parts):
        for x in range(tasks + 1):
            for spent in range(2):
                new[spent, x] = old[spent, x] - values[0]
                choices[part, spent, x] = 2 * x + spent
            if x > 0:
                _extend(
                    old, new, work, kept, present, owner, lowest[x], x, values, scale, choices[part]
                )
        old, new = new, old
    return _traced(choices)


@compiled
def _traced(choices: Ints) -> Ints:
    """Go back from the end by the choices that gave the best value."""
    parts = len(choices)
    cuts = np.zeros(parts + 1, np.int64)
    x, spent = choices.shape[2] - 1, 1
    for part in range(parts - 1, -1, -1):
        cuts[part + 1] = x
        x, spent = divmod(choices[part, spent, x], 2)
    return cuts


@compiled
def _extend(
    old: Floats,
    new: Floats,
    work: Floats,
    kept: Floats,
    present: Ints,
    owner: Ints,
    lowest: int,
    x: int,
    values: Floats,
    scale: float,
    choices: Ints,
) -> None:
    """Let one more part end at x: try every beginning, and every node that may keep some of it."""
    node = owner[x - 1]
    earlier, whole = node, 0.0
    at_edge = present[node + 1] == x
    for low in range(x - 1, lowest - 1, -1):
        while present[earlier] > low:
            if earlier < node:
                whole = max(whole, kept[present[earlier + 1]] - kept[present[earlier]])
            earlier -= 1
        worth = -value_at(values, work[x] - work[low], scale)
        fresh, spent = old[0, low] + worth, old[1, low] + worth
        opening, running = (fresh, 2 * low), (spent, 2 * low + 1)
        if earlier == node:
            without = opening
            with_node = _better((fresh + (kept[x] - kept[low]), opening[1]), running)
        else:
            rest = kept[present[earlier + 1]] - kept[low]
            without = _better((spent + whole, running[1]), (fresh + rest, opening[1]))
            with_node = (spent + (kept[x] - kept[present[node]]), running[1])
        with_node = _better(with_node, without)
        if at_edge:
            without = with_node
        new[0, x], choices[0, x] = _better((new[0, x], choices[0, x]), without)
        new[1, x], choices[1, x] = _better((new[1, x], choices[1, x]), with_node)


@inlined
def _better(one: tuple[float, int], other: tuple[float, int]) -> tuple[float, int]:
    """Return the choice of the larger value, the first of equals."""
    return one if one[0] >= other[0] else other
