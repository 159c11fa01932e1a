"""The single step plus the projected cost: section 4.2 for additive values.

The projected cost of a partitioning is taken as a sum over its intervals of a value that depends
on the interval's load. The least of bytes moved now plus gamma times that is then found by the
same pass over the positions as the single step alone (`single_step.py`), at the price of trying
every beginning of each interval: O((1 + tau) m^2) in all. What an interval adds does not depend on
how many come before it, so it is computed once, and each interval tried costs three sums.
"""

from typing import NamedTuple

import numpy as np

from algorithms.compiled import compiled
from algorithms.migration.grades import farthest_reaches
from algorithms.migration.limits import lower_bounds, owners_of
from algorithms.vocabulary import Floats, Ints

_NEVER = -np.inf


@compiled
def value_at(values: Floats, load: float, scale: float) -> float:
    """Return the value of a load, linear between the knots at 0, 1, 2, ... times 1 / scale."""
    position = load * scale
    low = min(int(position), len(values) - 2)
    share = min(position - low, 1.0)
    return float(values[low] * (1.0 - share) + values[low + 1] * share)


class Worths(NamedTuple):
    """What the interval [l, x) adds to the gain, by `offsets[x] + l`.

    `bare`, `keeping`, `last` float64[intervals], see `_worths`; `splits` int64[m + 1]: from where
    on an interval that ends at x lies within one present node's.
    """

    offsets: Ints
    splits: Ints
    bare: Floats
    keeping: Floats
    last: Floats


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
    worths = _worths(work, kept, present, owner, lowest, values, scale)
    one_grade = lowest.reshape(1, tasks + 1), np.array([parts]), np.ones(1, np.int64)
    farthest, earliest = farthest_reaches(*one_grade)
    gains = np.empty((parts + 1, 2, tasks + 1))
    gains[0, :, 0] = 0.0
    for part in range(parts):
        first, last = earliest[parts - part], farthest[part]
        for x in range(earliest[parts - part - 1], farthest[part + 1] + 1):
            at_edge = x == 0 or owner[x] != owner[x - 1]
            without, with_node = _gains_at(x, first, last, gains[part], lowest[x], worths)
            without = with_node if at_edge else without
            if x <= last:
                without = max(without, gains[part, 0, x] - values[0])
                with_node = max(with_node, gains[part, 1, x] - values[0])
            gains[part + 1, 0, x], gains[part + 1, 1, x] = without, with_node
    return _trace(gains, owner, lowest, (farthest, earliest), worths, values[0])


@compiled
def _worths(
    work: Floats,
    kept: Floats,
    present: Ints,
    owner: Ints,
    lowest: Ints,
    values: Floats,
    scale: float,
) -> Worths:
    """Price every interval within the limit by its load, and by the state that may stay.

    Within one node's interval: `bare` when nothing stays, `keeping` when all of it does. Beyond:
    `bare` when the largest node wholly inside stays or none, `keeping` when the first does, `last`
    when the last does.
    """
    tasks = len(lowest) - 1
    offsets, splits = np.zeros(tasks + 1, np.int64), np.zeros(tasks + 1, np.int64)
    count = 0
    for x in range(tasks + 1):
        offsets[x] = count - lowest[x]
        count += x - lowest[x]
    bare, keeping, last = np.empty(count), np.empty(count), np.empty(count)
    for x in range(1, tasks + 1):
        node = owner[x - 1]
        splits[x] = max(present[node], lowest[x])
        for low in range(splits[x], x):
            worth = -value_at(values, work[x] - work[low], scale)
            bare[offsets[x] + low], keeping[offsets[x] + low] = worth, worth + (kept[x] - kept[low])
        earlier, whole, own = node, 0.0, kept[x] - kept[present[node]]
        for low in range(splits[x] - 1, lowest[x] - 1, -1):
            while present[earlier] > low:
                if earlier < node:
                    whole = max(whole, kept[present[earlier + 1]] - kept[present[earlier]])
                earlier -= 1
            worth = -value_at(values, work[x] - work[low], scale)
            bare[offsets[x] + low] = worth + whole
            keeping[offsets[x] + low] = worth + (kept[present[earlier + 1]] - kept[low])
            last[offsets[x] + low] = worth + own
    return Worths(offsets, splits, bare, keeping, last)


@compiled
def _gains_at(
    x: int, first: int, last: int, old: Floats, lowest: int, worths: Worths
) -> tuple[float, float]:
    """Return the most gained when one more part ends at x and begins from `first` to `last`.

    Without the node of the task before x, and when that may have a part. Choices are not kept, so
    the loops have no branches; the few that were taken are found again by `_trace`.
    """
    base, bare, keeping, whole = worths.offsets[x], worths.bare, worths.keeping, worths.last
    without, with_node, beyond = _NEVER, _NEVER, _NEVER
    for low in range(max(worths.splits[x], first), min(x - 1, last) + 1):
        fresh, kept = old[0, low] + bare[base + low], old[0, low] + keeping[base + low]
        spent = old[1, low] + bare[base + low]
        without = fresh if fresh > without else without
        with_node = kept if kept > with_node else with_node
        beyond = spent if spent > beyond else beyond
    with_node, beyond = max(with_node, beyond), _NEVER
    for low in range(max(lowest, first), min(worths.splits[x] - 1, last) + 1):
        fresh, kept = old[0, low] + keeping[base + low], old[1, low] + whole[base + low]
        spent = old[1, low] + bare[base + low]
        without = fresh if fresh > without else without
        with_node = kept if kept > with_node else with_node
        beyond = spent if spent > beyond else beyond
    without = max(without, beyond)
    return without, max(with_node, without)


@compiled
def _trace(
    gains: Floats,
    owner: Ints,
    lowest: Ints,
    reached: tuple[Ints, Ints],
    worths: Worths,
    idle: float,
) -> Ints:
    """Go back from the end along the choices that gave each gain."""
    farthest, earliest = reached
    parts = len(gains) - 1
    cuts = np.zeros(parts + 1, np.int64)
    x, spent = gains.shape[2] - 1, 1
    for part in range(parts - 1, -1, -1):
        cuts[part + 1] = x
        first, last = earliest[parts - part], farthest[part]
        gain, old = gains[part + 1, spent, x], gains[part]
        if x <= last and old[spent, x] - idle == gain:
            continue
        with_node = spent == 1 or owner[x] != owner[x - 1]
        low = _began_inside(x, first, last, old, worths, gain, with_node)
        if low < 0:
            low = _began_beyond(x, max(lowest[x], first), last, old, worths, gain, with_node)
        x, spent = divmod(low, 2)
    return cuts


@compiled
def _began_inside(
    x: int, first: int, last: int, old: Floats, worths: Worths, gain: float, with_node: bool
) -> int:
    """Return twice where the part of this gain begins plus its u, within one node's interval."""
    base, bare, keeping = worths.offsets[x], worths.bare, worths.keeping
    for low in range(min(x - 1, last), max(worths.splits[x], first) - 1, -1):
        fresh, spent = old[0, low], old[1, low]
        if fresh + bare[base + low] == gain or (with_node and fresh + keeping[base + low] == gain):
            return 2 * low
        if with_node and spent + bare[base + low] == gain:
            return 2 * low + 1
    return -1


@compiled
def _began_beyond(
    x: int, first: int, last: int, old: Floats, worths: Worths, gain: float, with_node: bool
) -> int:
    """Return twice where the part of this gain begins plus its u, in an earlier node's interval."""
    base, bare, keeping, whole = worths.offsets[x], worths.bare, worths.keeping, worths.last
    for low in range(min(worths.splits[x] - 1, last), first - 1, -1):
        fresh, spent = old[0, low], old[1, low]
        if spent + bare[base + low] == gain or (with_node and spent + whole[base + low] == gain):
            return 2 * low + 1
        if fresh + keeping[base + low] == gain:
            return 2 * low
    raise ValueError("no part has this gain")
