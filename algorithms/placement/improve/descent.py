"""Descent by single moves: each makes the placement better by the order of its goal, exactly.

Better is what comes first of: the least excess over what may not be exceeded, then the exceedances
of limits in units of the limits, the largest first, then the cost.
"""

from typing import NamedTuple

import numpy as np

from algorithms.compiled import compiled, inlined
from algorithms.placement.improve.board import Board, change, move
from algorithms.vocabulary import Floats, Ints

# Differences below this share are rounding.
_SAME = 1e-9
_MEASURES = 3
_SCORES = _MEASURES + 2
# Moves tried in one descent, and targets of a unit in one pass.
_MOST_TRIED = 6_000_000
_MOST_TARGETS = 128
_MOST_PASSES = 20


class Preference(NamedTuple):
    """What is better, by three measures: replication, imbalance, load of the fullest node.

    `limits` float64[3]: of the exceedances; `caps` float64[4]: what may not be exceeded, at last by
    the cost of moves. `aims` float64[3]: what is above them costs something; `weights` float64[4]:
    the cost of a record/s of traffic, of imbalance 1, of moves of cost 1, and of an aim exceeded by
    the aim.
    """

    limits: Floats
    caps: Floats
    aims: Floats
    weights: Floats


def descend(board: Board, order: Preference, live: float) -> Floats:
    """Take moves that make the placement better, until none does or many were tried.

    Returns how it is score, float64[5]: excess, exceedances, cost; smaller is better from the
    front on.
    """
    tried = len(board.units) * min(len(board.targets), _MOST_TARGETS)
    passes = max(1, min(_MOST_PASSES, _MOST_TRIED // max(1, tried)))
    score = np.zeros(_SCORES)
    _descend(board, order, live, passes, score)
    return score


def is_better(score: Floats, other: Floats) -> bool:
    """Return whether the first difference that is not a rounding is for the better."""
    return bool(_is_better(score, other))


@compiled
def _descend(board: Board, order: Preference, live: float, passes: int, best: Floats) -> None:
    costs, present, capacities = board[6:9]
    _, units, targets, hosts, _, loads, _ = board[9:]
    limits, caps, aims, weights = order
    # Received records/s, cost of moves, sum of the shares of all nodes.
    sums, trial, worst = np.zeros(3), best.copy(), np.zeros(3, np.int64)
    sums[0], sums[2] = loads.sum(), (loads / capacities).sum()
    for piece in units:
        sums[1] += costs[piece] * int(hosts[piece] != present[piece])
    _find_worst(worst, loads, capacities)
    fullest = loads[worst[0]] / capacities[worst[0]]
    _score(best, sums[0], live, fullest, sums[2] / len(loads), sums[1], limits, caps, aims, weights)
    for _ in range(passes):
        improved = False
        for piece in units:
            for place in range(min(len(targets), _MOST_TARGETS) + 1):
                # Back home first.
                target = int(present[piece])
                if place > 0:
                    target = int(targets[(place + piece) % len(targets)])
                if _try(piece, target, board, order, live, sums, worst, trial, best):
                    improved = True
        if not improved:
            break


@compiled
def _try(
    piece: int,
    target: int,
    board: Board,
    order: Preference,
    live: float,
    sums: Floats,
    worst: Ints,
    trial: Floats,
    best: Floats,
) -> bool:
    """Move a unit if that makes the placement better, and return whether it does."""
    rates, indptr, indices, _, _, parts, costs, present, capacities = board[:9]
    is_open, _, _, hosts, counts, loads, added = board[9:]
    limits, caps, aims, weights = order
    home = hosts[piece]
    if target == home or not is_open[target]:
        return False
    less, more = change(piece, home, target, rates, indptr, indices, parts, counts, added)
    cost = costs[piece] * (int(home == present[piece]) - int(target == present[piece]))
    lowered = (loads[home] - less) / capacities[home]
    raised = (loads[target] + more) / capacities[target]
    fullest = max(lowered, raised)
    for node in worst:
        if node != home and node != target:  # noqa: PLR1714 - compiled
            fullest = max(fullest, loads[node] / capacities[node])
    received, moved = sums[0] + more - less, sums[1] + cost
    shares = sums[2] - less / capacities[home] + more / capacities[target]
    _score(trial, received, live, fullest, shares / len(loads), moved, limits, caps, aims, weights)
    if not _is_better(trial, best):
        return False
    move(
        piece, home, target, less, more, rates, indptr, indices, parts, hosts, counts, loads, added
    )
    sums[0], sums[1], sums[2] = received, moved, shares
    _find_worst(worst, loads, capacities)
    best[:] = trial
    return True


@inlined
def _find_worst(worst: Ints, loads: Floats, capacities: Floats) -> None:
    """Write the three nodes of the largest shares; apart from the two of a move, one is worst."""
    worst[:] = 0
    for place in range(min(3, len(loads))):
        share = -1.0
        for node in range(len(loads)):
            is_known = False
            for earlier in range(place):
                is_known = is_known or worst[earlier] == node
            if not is_known and loads[node] / capacities[node] > share:
                share = loads[node] / capacities[node]
                worst[place] = node


@inlined
def _score(
    into: Floats,
    received: float,
    live: float,
    fullest: float,
    mean: float,
    moved: float,
    limits: Floats,
    caps: Floats,
    aims: Floats,
    weights: Floats,
) -> None:
    """Write the excess, the exceedances in falling order, and the cost."""
    imbalance = fullest - mean
    factor = received / live if live > 0.0 else 0.0
    into[0] = max(0.0, moved / caps[_MEASURES] - 1.0 - _SAME)
    cost = weights[0] * received + weights[1] * imbalance + weights[2] * moved
    for number in range(_MEASURES):
        value = factor if number == 0 else imbalance if number == 1 else fullest
        into[0] += max(0.0, value / caps[number] - 1.0 - _SAME)
        into[number + 1] = max(0.0, value / limits[number] - 1.0)
        cost += weights[3] * max(0.0, value / aims[number] - 1.0)
    # Three values in falling order.
    for step in range(_MEASURES):
        first = 1 + step % 2
        if into[first] < into[first + 1]:
            into[first], into[first + 1] = into[first + 1], into[first]
    into[_MEASURES + 1] = cost


@compiled
def _is_better(score: Floats, other: Floats) -> bool:
    for number in range(len(other)):
        difference = score[number] - other[number]
        if abs(difference) > _SAME * (1.0 + abs(other[number])):
            return bool(difference < 0.0)
    return False
