"""Best-fit decreasing over one or several periods, and the streams that leave overloaded nodes."""

import numpy as np

from algorithms.compiled import compiled, inlined
from algorithms.vocabulary import Flags, Floats, Ints

# Sums of rates that differ by less than this share of the capacity are equal.
ROUNDING = 1e-9


# Weight of the square of an excess in the cycle against that of free capacity.
EXCESS_WEIGHT = 100.0
# Weight of the relief in the parts of a cycle against that in the next periods.
CYCLE_WEIGHT = 0.1


def best_fit(
    order: Ints,
    sizes: Floats,
    free: Floats,
    capacity: float,
    cycle: Floats | None = None,
    cycle_free: Floats | None = None,
) -> tuple[Ints, int]:
    """Return the node of each item of `order`, and how many nodes were opened.

    `sizes` float64[n, k]: records/s of each item in each of k periods; `free` float64[m, k]: free
    capacity of the open nodes, below 0 for a node that takes nothing. An item goes to a node that
    it fits in every period: to the one whose free capacity after it has the least sum of squares,
    so that opposite items share a node; in one period, that is the least free capacity. Without
    one, it goes to a new node of this capacity, with the number m, m + 1, ... An item larger than
    the capacity of a new node has one for itself.

    `cycle` float64[n, q] and `cycle_free` float64[m, q]: rates and free capacity in the parts of a
    cycle, where an item need not fit: the growth of the squares of the excess is added with
    `EXCESS_WEIGHT`.
    """
    if cycle is None or cycle_free is None:
        cycle, cycle_free = np.zeros((len(sizes), 0)), np.zeros((len(free), 0))
    opened = len(free)
    # Every item may need a new node.
    spaces = np.full((opened + len(order), free.shape[1]), capacity)
    spaces[:opened] = free
    cycle_spaces = np.full((opened + len(order), cycle.shape[1]), capacity)
    cycle_spaces[:opened] = cycle_free
    nodes, used = _place(order, sizes, spaces, cycle, cycle_spaces, opened, ROUNDING * capacity)
    return nodes, used - opened


@compiled
def _place(
    order: Ints,
    sizes: Floats,
    spaces: Floats,
    cycle: Floats,
    cycle_spaces: Floats,
    opened: int,
    tolerance: float,
) -> tuple[Ints, int]:
    nodes = np.empty(len(order), np.int64)
    for place in range(len(order)):
        item = order[place]
        best, least = opened, np.inf
        for node in range(opened):
            squares = _squares_left(sizes[item], spaces[node], tolerance, least)
            if squares < least:
                squares = _with_excess(cycle[item], cycle_spaces[node], squares, least)
            if squares < least:
                best, least = node, squares
        if best == opened:
            opened += 1
        for period in range(spaces.shape[1]):
            spaces[best, period] -= sizes[item, period]
        for part in range(cycle.shape[1]):
            cycle_spaces[best, part] -= cycle[item, part]
        nodes[place] = best
    return nodes, opened


@inlined
def _squares_left(size: Floats, space: Floats, tolerance: float, least: float) -> float:
    """Return the sum of the squares of what an item leaves free, `least` if that is not less."""
    squares = 0.0
    for period in range(len(size)):
        left = space[period] - size[period]
        squares += left * left
        if left < -tolerance or squares >= least:
            return least
    return squares


@inlined
def _with_excess(size: Floats, space: Floats, squares: float, least: float) -> float:
    """Return the squares plus the weighted growth of the excess; `least` if that is not less."""
    for part in range(len(size)):
        left = space[part] - size[part]
        if left < 0:
            before = min(space[part], 0.0)
            squares += EXCESS_WEIGHT * (left * left - before * before)
        if squares >= least:
            return least
    return squares


@compiled
def cheapest_victims(
    order: Ints,
    owner: Ints,
    sizes: Floats,
    cycle: Floats,
    excess: Floats,
    cycle_excess: Floats,
    costs: Floats,
    tolerance: float,
) -> Flags:
    """Return the streams that leave, bool[s], so that no node exceeds its limit.

    `order` int64[p]: the streams of overloaded nodes, node by node; `owner` int64[s]; `sizes`
    float64[s, k] and `cycle` float64[s, q]: rates in the next periods and in the parts of a cycle;
    `excess` float64[m, k] and `cycle_excess` float64[m, q]: loads minus limits, changed in place;
    `costs` float64[s]: positive.

    In the period with the largest excess, the stream leaves that relieves most for its cost; the
    squares of the excess in the cycle count, too. Then the next one, until no excess is left.
    """
    moved = np.zeros(len(owner), np.bool_)
    start = 0
    while start < len(order):
        node = owner[order[start]]
        stop = start
        while stop < len(order) and owner[order[stop]] == node:
            stop += 1
        while excess[node].max() > tolerance:
            best = _best_victim(
                order[start:stop], moved, sizes, cycle, excess[node], cycle_excess[node], costs
            )
            if best < 0:
                break
            moved[best] = True
            excess[node] -= sizes[best]
            cycle_excess[node] -= cycle[best]
        start = stop
    return moved


@compiled
def _best_victim(
    streams: Ints,
    moved: Flags,
    sizes: Floats,
    cycle: Floats,
    excess: Floats,
    cycle_excess: Floats,
    costs: Floats,
) -> int:
    """Return the stream of a node that relieves most for its cost, -1 for none."""
    best, most = -1, 0.0
    period = np.argmax(excess)
    for stream in streams:
        if moved[stream] or sizes[stream, period] <= 0:
            continue
        relief = min(sizes[stream, period], excess[period]) * excess[period]
        relief += CYCLE_WEIGHT * _relief(cycle[stream], cycle_excess)
        if relief > most * costs[stream]:
            best, most = stream, relief / costs[stream]
    return best


@inlined
def _relief(rates: Floats, excess: Floats) -> float:
    """Return by how much the sum of the squares of the excess falls without these rates."""
    relief = 0.0
    for part in range(len(rates)):
        if excess[part] > 0:
            left = max(excess[part] - rates[part], 0.0)
            relief += excess[part] ** 2 - left**2
    return relief
