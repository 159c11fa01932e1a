"""Virtual workers of consistent grouping: signals of workers, queues of idle and busy workers.

Paper 002, sections 5.1 to 5.3. A signal is a ratio: the utilisation that a worker should have,
divided by the one that it has. Above 1 it asks to increase the load, below 1 to decrease it; 0 is
no signal.
"""

from typing import Final, NamedTuple

import numpy as np

from algorithms.compiled import compiled
from algorithms.partitioning.groupings.random_choices import PAIRS_PER_WORKER
from algorithms.random_numbers import mixed
from algorithms.vocabulary import Floats, Ints

# The signal of a worker without any load.
LARGEST_RATIO: Final = 1e6
_STEP = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_LOW_BITS = np.uint64(2**32 - 1)


class Views(NamedTuple):
    """What each of s sources knows; the functions of this module change the arrays in place.

    Of v virtual workers, int64[s, v]: `load` in messages, `owner` the worker, `entered` the clock
    of the last move, 0 without one. Of n workers, int64[s, n]: virtual workers `owned`; virtual
    workers that an idle worker still has to receive, negative for those that a busy worker still
    has to give, `wanted`, 0 outside the queues; the clock at which it entered its queue, `since`;
    the clock of its last signal to decrease its load, `reported`. int64[s]: messages `routed`, and
    `clock`, which counts entries into queues and moves.
    """

    load: Ints
    owner: Ints
    entered: Ints
    owned: Ints
    wanted: Ints
    since: Ints
    reported: Ints
    routed: Ints
    clock: Ints


class Rules(NamedTuple):
    """The parameters of consistent grouping as compiled code uses them."""

    seed: np.uint64
    room: float
    lower: float
    upper: float
    hysteresis: float
    relative: bool
    most: int
    oldest: bool
    probe: bool


def new_views(sources: int, owner: Ints, workers: int) -> Views:
    """Return the views of sources that have sent nothing yet."""
    count = len(owner)
    owned = np.bincount(owner, minlength=workers)
    empty = np.zeros((5, sources, workers), np.int64)
    return Views(
        load=np.zeros((sources, count), np.int64),
        owner=np.tile(owner, (sources, 1)),
        entered=np.zeros((sources, count), np.int64),
        owned=np.tile(owned, (sources, 1)),
        wanted=empty[0],
        since=empty[1],
        reported=empty[2],
        routed=np.zeros(sources, np.int64),
        clock=np.zeros(sources, np.int64),
    )


@compiled
def choose_virtual_worker(key: np.uint64, load: Ints, routed: int, room: float) -> int:
    """Return the first virtual worker of a key's sequence that has room.

    Algorithm 1, with the decisions of `RandomChoices` over virtual workers: they have room below
    `room` = (1 + eps) / v messages per message routed, the present one included. `key`: its hash
    plus the seed.
    """
    count, limit = np.uint64(len(load)), np.int64(np.ceil(room * (routed + 1)))
    word, virtual = key, np.int64(0)
    for _ in range(PAIRS_PER_WORKER * len(load)):
        word += _STEP
        bits = mixed(word)
        virtual = np.int64(((bits >> _HALF) * count) >> _HALF)
        if load[virtual] < limit:
            return int(virtual)
        virtual = np.int64(((bits & _LOW_BITS) * count) >> _HALF)
        if load[virtual] < limit:
            return int(virtual)
    while load[virtual] >= limit:
        virtual = (virtual + 1) % np.int64(count)
    return int(virtual)


@compiled
def signal_workers(utilisation: Floats, loads: Ints, evidence: Floats, rules: Rules) -> Floats:
    """Return the signal of each worker at the end of a time slot, float64[n]; see the module.

    A worker is busy above the upper threshold and idle below the lower one. `evidence` float64[2,
    n] is changed: the sums over the slots of the utilisation above the upper and below the lower
    threshold, at least 0 and at most the hysteresis. A worker signals when its sum has reached the
    hysteresis, so without hysteresis after every slot outside the thresholds, as in the paper.
    Relative: where the utilisation of all workers together exceeds the middle of the thresholds,
    all utilisations are scaled so that it does not; `loads` int64[n], in any unit, give capacities.
    """
    middle = (rules.lower + rules.upper) / 2
    total = _total_utilisation(utilisation, loads) if rules.relative else 0.0
    scale = middle / total if total > middle else 1.0
    signals = np.zeros(len(utilisation))
    for worker in range(len(utilisation)):
        level = utilisation[worker] * scale
        above = evidence[0, worker] + level - rules.upper
        below = evidence[1, worker] + rules.lower - level
        evidence[0, worker] = above = max(0.0, min(rules.hysteresis, above))
        evidence[1, worker] = below = max(0.0, min(rules.hysteresis, below))
        if level > rules.upper and above >= rules.hysteresis:
            signals[worker] = middle / level
        elif level < rules.lower and below >= rules.hysteresis:
            signals[worker] = middle / level if level * LARGEST_RATIO > middle else LARGEST_RATIO
    return signals


@compiled
def _total_utilisation(utilisation: Floats, loads: Ints) -> float:
    """Return the sum of all loads divided by all capacities; 0 if a worker has no utilisation."""
    capacity = 0.0
    for worker in range(len(loads)):
        if utilisation[worker] <= 0.0:
            return 0.0
        capacity += loads[worker] / utilisation[worker]
    return float(loads.sum() / capacity)


@compiled
def receive_signal(views: Views, source: int, worker: int, signal: float, most: int) -> None:
    """Enter a worker into the queue of idle or of busy workers of a source.

    It wants to receive or to give as many virtual workers as it takes to reach the middle of the
    thresholds, at least 1 and at most `most`. A worker that is in the same queue already keeps
    its place; one that is in the other queue leaves that. Signal 0 removes it from both.
    """
    if signal == 0.0:
        views.wanted[source, worker] = 0
        return
    amount = max(1, int(min(float(most), abs(views.owned[source, worker] * (signal - 1.0)))))
    if signal < 1.0:
        amount = -amount
        views.clock[source] += 1
        views.reported[source, worker] = views.clock[source]
    if views.wanted[source, worker] * amount <= 0:
        views.clock[source] += 1
        views.since[source, worker] = views.clock[source]
    views.wanted[source, worker] = amount


@compiled
def pair_workers(views: Views, source: int, rules: Rules) -> int:
    """Move virtual workers from the first busy to the first idle worker; return how many.

    The pairing ends when a queue is empty. A worker keeps its last virtual worker: without messages
    it has no acknowledgement on which a signal could return. Oldest: the virtual worker moves that
    its worker has had for the longest time, otherwise the one that it received last. Probe: while
    no worker is idle, the one that reported to be busy least recently receives one.
    """
    owned, wanted = views.owned[source], views.wanted[source]
    moves = 0
    while True:
        busy = _first_in_queue(views.since[source], wanted, -1)
        idle = _first_in_queue(views.since[source], wanted, 1)
        if busy >= 0 and owned[busy] <= 1:
            wanted[busy] = 0
            continue
        if busy >= 0 and idle < 0 and rules.probe:
            idle = _least_recent(views.reported[source], busy)
        if busy < 0 or idle < 0:
            return moves
        virtual = _pick(views.owner[source], views.entered[source], busy, rules.oldest)
        views.clock[source] += 1
        views.owner[source, virtual] = idle
        views.entered[source, virtual] = views.clock[source]
        owned[busy] -= 1
        owned[idle] += 1
        wanted[busy] += 1
        wanted[idle] -= min(1, max(0, wanted[idle]))
        moves += 1


@compiled
def _first_in_queue(since: Ints, wanted: Ints, sign: int) -> int:
    """Return the worker that entered a queue first, -1 if the queue is empty."""
    first = -1
    for worker in range(len(since)):
        if wanted[worker] * sign > 0 and (first < 0 or since[worker] < since[first]):
            first = worker
    return first


@compiled
def _least_recent(reported: Ints, but: int) -> int:
    """Return the worker other than `but` that reported least recently, -1 if there is none."""
    earliest = -1
    for worker in range(len(reported)):
        if worker != but and (earliest < 0 or reported[worker] < reported[earliest]):
            earliest = worker
    return earliest


@compiled
def _pick(owner: Ints, entered: Ints, worker: int, oldest: bool) -> int:
    """Return the virtual worker that `worker` has had longest or shortest; ties: the lowest."""
    picked, sign = -1, 1 if oldest else -1
    for virtual in range(len(owner)):
        if owner[virtual] == worker and (
            picked < 0 or sign * entered[virtual] < sign * entered[picked]
        ):
            picked = virtual
    return picked
