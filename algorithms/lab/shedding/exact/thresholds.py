"""Networks in which one resource binds: the threshold of every drop location, in closed form.

With one price p, the profit of a location is convex and falls with p; its threshold is where it is
zero. A price in V(r) = min_p p C + sum_i r_i max(0, profit_i(p)) changes the slope only at
thresholds, so they and 0 are all cuts. An optimal plan fills the resource in the order of falling
thresholds: locations before some position are full, that position is partial, the rest is dropped.

The thresholds follow from one sweep of the price down from infinity. The profit of every location
is a line until the next split edge that it reaches turns on; profits only grow on the way, so each
location turns on once.
"""

import heapq
from typing import NamedTuple

import numpy as np

from algorithms.compiled import compiled
from algorithms.lab.shedding.exact.equations import Equations, arriving_at
from algorithms.vocabulary import Flags, Floats, Ints


class Thresholds(NamedTuple):
    """Locations by falling threshold, int64[d]; the thresholds float64[d] in that order.

    `rank` int64[d]: position of each location. Infinite: its records need nothing of the resource.
    """

    order: Ints
    price: Floats
    rank: Ints


@compiled
def thresholds_of(eq: Equations) -> Thresholds:
    """Return the thresholds of a network with one row, by a sweep of its price."""
    count = len(eq.values)
    value, load = eq.values.copy(), np.zeros(count)
    for place in range(count):
        for k in range(eq.load_start[place], eq.load_start[place + 1]):
            load[place] += eq.load[k]
    is_on = np.zeros(count, np.bool_)
    order, price = np.empty(count, np.int64), np.empty(count)
    # Places in the order of paths: those that feed are before those that are fed.
    depth = np.empty(count, np.int64)
    for position in range(count):
        depth[eq.order[position]] = position
    queue = [(-_root(value[place], load[place]), -depth[place], place) for place in range(count)]
    heapq.heapify(queue)
    more = (np.zeros(count), np.zeros(count))
    done = 0
    while done < count:
        minus, _, place = heapq.heappop(queue)
        if is_on[place] or -minus != _root(value[place], load[place]):
            continue
        is_on[place] = True
        # Rounding may raise a threshold above the one before.
        order[done], price[done] = place, min(-minus, price[done - 1]) if done else -minus
        done += 1
        _raise_feeding(eq, place, value, load, more, is_on, depth, queue)
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    return Thresholds(order, price, rank)


@compiled
def _root(value: float, load: float) -> float:
    """Return the price at which a profit is zero; infinity without load."""
    return value / load if load > 0 else np.inf


@compiled
def _raise_feeding(
    eq: Equations,
    place: int,
    value: Floats,
    load: Floats,
    more: tuple[Floats, Floats],
    is_on: Flags,
    depth: Ints,
    queue: list[tuple[float, int, int]],
) -> None:
    """Add the profit of a location that turned on to those that feed it, through those on.

    `more`: value and load to add to those that feed each location, zeros before and after.
    """
    more_value, more_load = more
    more_value[place], more_load[place] = value[place], load[place]
    waiting = [(-depth[place], place)]
    while len(waiting) > 0:
        _, fed = heapq.heappop(waiting)
        added_value, added_load = more_value[fed], more_load[fed]
        more_value[fed] = more_load[fed] = 0.0
        if fed < eq.inputs or not is_on[fed]:
            continue
        split = fed - eq.inputs
        for k in range(eq.feeds_start[split], eq.feeds_start[split + 1]):
            feeding, gain = eq.feeds[k], eq.feeds_gain[k]
            if more_value[feeding] == 0 and more_load[feeding] == 0:
                heapq.heappush(waiting, (-depth[feeding], feeding))
            more_value[feeding] += gain * added_value
            more_load[feeding] += gain * added_load
            value[feeding] += gain * added_value
            load[feeding] += gain * added_load
            if not is_on[feeding]:
                root = _root(value[feeding], load[feeding])
                heapq.heappush(queue, (-root, -depth[feeding], feeding))


@compiled
def fill(eq: Equations, thresholds: Thresholds, rates: Floats, flows: Floats) -> float:
    """Write the optimal flows float64[d] at rates float64[i]; return the price of the resource."""
    count, capacity = len(eq.values), eq.capacity[0]
    if _load_before(eq, thresholds, count, rates, flows) <= capacity:
        return 0.0
    # With `low` locations on there is room, with `high` there is none.
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if _load_before(eq, thresholds, middle, rates, flows) <= capacity:
            low = middle
        else:
            high = middle
    most = flows.copy()
    above = _load_before(eq, thresholds, high, rates, most)
    below = _load_before(eq, thresholds, low, rates, flows)
    share = (capacity - below) / (above - below)
    for place in range(count):
        flows[place] += share * (most[place] - flows[place])
    return float(thresholds.price[low])


@compiled
def _load_before(
    eq: Equations, thresholds: Thresholds, on: int, rates: Floats, flows: Floats
) -> float:
    """Write the flows if the first locations are full and the others dropped; return the load."""
    total = 0.0
    for position in range(len(eq.order)):
        place = eq.order[position]
        arriving = 0.0
        if thresholds.rank[place] < on:
            arriving = arriving_at(eq, place, rates, flows)
            for k in range(eq.load_start[place], eq.load_start[place + 1]):
                total += eq.load[k] * arriving
        flows[place] = arriving
    return float(total)


def prices_of_cuts(eq: Equations, thresholds: Thresholds) -> Floats:
    """Return the prices of all cuts, float64[n]: 0, and thresholds at which the load changes.

    Where all that feeds a location is off, nothing arrives, and its threshold changes nothing.
    """
    reached = np.empty(len(thresholds.price))
    for place in eq.order.tolist():
        own = thresholds.price[thresholds.rank[place]]
        if place >= eq.inputs:
            split = place - eq.inputs
            feeding = eq.feeds[eq.feeds_start[split] : eq.feeds_start[split + 1]]
            own = min(own, reached[feeding].max(initial=0.0))
        reached[place] = own
    return np.unique(np.concatenate([[0.0], reached[np.isfinite(reached)]]))
