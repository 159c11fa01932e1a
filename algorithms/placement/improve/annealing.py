"""Annealing from an assignment: traffic, moves and overload together, with more and more rigour.

Traffic counts a stream once per node, so a move that takes the last but one reader away seems
worth nothing. What is annealed is the sum of rate times readers ** power, for a power that falls
to 0, where it is the traffic: on the way, gathering the readers of a stream pays.
"""

from typing import NamedTuple

import numpy as np

from algorithms.compiled import compiled, inlined
from algorithms.placement.improve.board import Board, move
from algorithms.random_numbers import Words, below, unit
from algorithms.vocabulary import Flags, Floats, Ints, SmallInts

# Readers beyond this count change the power sum by next to nothing.
_TABLE = 1024
_STAGES = 60
# Tried moves after which the mean load is computed again.
_CHUNK = 256
# In units of the mean rate that a unit reads.
_COLD = 0.03
# The last share of the stages takes only what lowers the sum, at the power 0.
_SETTLING = 0.1
# Records/s of traffic that one record/s of overload is worth in the end.
_OVERLOAD = 16.0


class SearchSchedule(NamedTuple):
    """How a search begins, and what it heeds.

    `hot`: the temperature in units of the mean rate that a unit reads. `power`: see above.
    `overload`: records/s of traffic that one of overload is worth. `mean`: the part in which a move
    is credited with raising the mean load, from which imbalance is measured.
    """

    hot: float
    power: float
    overload: float
    mean: float = 0.0


class Prices(NamedTuple):
    """What a search weighs: records/s of traffic that the move of a unit of cost 1 is worth.

    `imbalance`, `fullest`: the largest load of a node above the mean, and in all, as shares of its
    capacity; what is above counts as overload.
    """

    move: float
    imbalance: float
    fullest: float


def anneal(
    board: Board, prices: Prices, schedule: SearchSchedule, steps: int, state: Words
) -> None:
    """Anneal an assignment with so many tried moves; the board has the last one."""
    read = board.indices
    scale = float((board.rates[read] * board.parts).mean()) if len(read) else 0.0
    gain = np.zeros(_TABLE)
    for stage in range(_STAGES):
        cooled = stage / (_STAGES * (1 - _SETTLING))
        _set_power(gain, max(0.0, schedule.power * (1 - cooled)))
        falling = (_COLD / schedule.hot) ** cooled
        _stage(
            board, state, gain, prices,
            schedule.overload * (_OVERLOAD / schedule.overload) ** min(1.0, cooled), schedule.mean,
            scale * schedule.hot * falling if cooled < 1 else 0.0,
            max(1, steps // _STAGES),
        )  # fmt: skip


def _set_power(gain: Floats, power: float) -> None:
    """Have one more reader on top of c add (c + 1) ** power - c ** power; 0 is the traffic."""
    counts = np.arange(_TABLE, dtype=np.float64)
    gain[:] = (counts + 1) ** power - counts**power if power > 0 else 0.0
    gain[0] = 1.0


@compiled
def _stage(
    board: Board, state: Words, gain: Floats, prices: Prices, overload: float, credit: float,
    temperature: float, steps: int,
) -> None:  # fmt: skip
    """Try so many moves at one temperature and power.

    The board is taken apart once: numba counts references whenever an array is reached through a
    tuple, at more cost than the step itself.
    """
    rates, indptr, indices, spans, readers, parts, costs, present, capacities = board[:9]
    is_open, units, targets, hosts, counts, loads, added = board[9:]
    share, slope = 0.0, 0.0
    for step in range(steps):
        if step % _CHUNK == 0:
            share, slope = _room(loads, capacities, prices.imbalance, prices.fullest)
        piece = units[below(state, len(units))]
        home = hosts[piece]
        target = _target(
            state, piece, indptr, indices, spans, readers, present, is_open, targets, hosts
        )
        if target == home:
            continue
        worth, less, more = _worth(
            piece, home, target, rates, indptr, indices, parts, counts, added, gain
        )
        away = int(home == present[piece]) - int(target == present[piece])
        worth += prices.move * costs[piece] * away
        worth += overload * (
            _beyond(loads[target], more, share * capacities[target])
            + _beyond(loads[home], -less, share * capacities[home])
            - credit * slope * (more / capacities[target] - less / capacities[home])
        )
        if worth > 0.0 and (temperature <= 0.0 or unit(state) >= np.exp(-worth / temperature)):
            continue
        move(
            piece, home, target, less, more, rates, indptr, indices, parts, hosts, counts, loads,
            added,
        )  # fmt: skip


@inlined
def _worth(
    piece: int,
    home: int,
    target: int,
    rates: Floats,
    indptr: Ints,
    indices: SmallInts,
    parts: Floats,
    counts: SmallInts,
    added: Floats,
    gain: Floats,
) -> tuple[float, float, float]:
    """Return by how much a move raises the annealed sum, and what home loses and target gets."""
    worth, less, more = 0.0, 0.0, 0.0
    for slot in range(indptr[piece], indptr[piece + 1]):
        stream = indices[slot]
        here, there = counts[stream, home], counts[stream, target]
        if parts[slot] < 1.0:
            amount = parts[slot] * rates[stream]
            less += amount * int(here == 0)
            more += amount * int(there == 0)
            worth += amount * (int(there == 0) - int(here == 0))
        else:
            less += added[stream, home] * int(here == 1)
            more += added[stream, target] * int(there == 0)
            worth += added[stream, target] * gain[min(there, _TABLE - 1)]
            worth -= added[stream, home] * gain[min(here, _TABLE) - 1]
    return worth, less, more


@inlined
def _beyond(load: float, added: float, room: float) -> float:
    """Return by how much a change of a load raises what is beyond its room."""
    return max(0.0, load + added - room) - max(0.0, load - room)


@inlined
def _room(
    loads: Floats, capacities: Floats, imbalance: float, fullest: float
) -> tuple[float, float]:
    """Return the share of its capacity that a node may be loaded to, and what raises it.

    Where that is the mean and the imbalance, a unit of share on any node lowers the overload of all
    by the second number.
    """
    mean = (loads / capacities).mean()
    if mean + imbalance >= fullest:
        return fullest, 0.0
    beyond = 0.0
    for node in range(len(loads)):
        if loads[node] > (mean + imbalance) * capacities[node]:
            beyond += capacities[node]
    return mean + imbalance, beyond / len(loads)


@inlined
def _target(
    state: Words,
    piece: int,
    indptr: Ints,
    indices: SmallInts,
    spans: Ints,
    readers: SmallInts,
    present: SmallInts,
    is_open: Flags,
    targets: Ints,
    hosts: SmallInts,
) -> int:
    """Return where a unit may go: to a reader of one of its streams, back home, or anywhere."""
    kind = below(state, 8)
    first, number = indptr[piece], indptr[piece + 1] - indptr[piece]
    target = present[piece]
    if kind > 1 and number > 0:
        stream = indices[first + below(state, number)]
        known = spans[stream + 1] - spans[stream]
        if known > 0:
            target = hosts[readers[spans[stream] + below(state, known)]]
    elif kind == 1 or number == 0:
        target = targets[below(state, len(targets))]
    return int(target) if is_open[target] else int(targets[below(state, len(targets))])
