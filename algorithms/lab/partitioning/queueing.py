"""Compiled loops of the queueing simulation: queues, acknowledgements, and counts of pairs.

Section 4 of paper 002. Message i arrives at time i. Each worker serves its queue in order of
arrival; a message is one unit of work, and the worker does `capacity` units per unit of time.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from algorithms.compiled import compiled, inlined
from algorithms.vocabulary import Flags, Floats, Ints, SmallInts

Bits = NDArray[np.uint64]
Hashes = NDArray[np.uint64]
NOTHING = -1


class Queues(NamedTuple):
    """The queues of n workers for m messages.

    `starts` float64[p]: when each part of the time starts, the first at 0; `capacity` float64[p,
    n]: messages per unit of time in that part; `part` int64[n]: the part in which the worker
    finishes its last message, at time `free` float64[n]. `finish` float64[m]: the time of each
    message's acknowledgement; `follower` int32[m]: the next message in the same queue. `head`,
    `tail` int64[n]: first message without acknowledgement, last message. Per worker, int64[n]:
    `length` of the queue, messages `assigned` since the last sample, and the sum of their
    latencies, `latency` float64[n].
    """

    starts: Floats
    capacity: Floats
    part: Ints
    free: Floats
    finish: Floats
    follower: SmallInts
    head: Ints
    tail: Ints
    length: Ints
    assigned: Ints
    latency: Floats


def new_queues(messages: int, starts: Floats, capacity: Floats) -> Queues:
    """Return empty queues."""
    count = capacity.shape[1]
    return Queues(
        starts=starts,
        capacity=capacity,
        part=np.zeros(count, np.int64),
        free=np.zeros(count),
        finish=np.empty(messages),
        follower=np.full(messages, NOTHING, np.int32),
        head=np.full(count, NOTHING, np.int64),
        tail=np.full(count, NOTHING, np.int64),
        length=np.zeros(count, np.int64),
        assigned=np.zeros(count, np.int64),
        latency=np.zeros(count),
    )


@inlined
def enqueue(queues: Queues, message: int, worker: int) -> float:
    """Append a message to the queue of a worker at the message's time; return when it finishes."""
    time = float(message)
    start = max(queues.free[worker], time)
    part, last, work = queues.part[worker], len(queues.starts) - 1, 1.0
    while part < last and queues.starts[part + 1] <= start:
        part += 1
    while part < last and start + work / queues.capacity[part, worker] > queues.starts[part + 1]:
        work -= (queues.starts[part + 1] - start) * queues.capacity[part, worker]
        start = queues.starts[part + 1]
        part += 1
    finish = start + work / queues.capacity[part, worker]
    queues.part[worker], queues.free[worker], queues.finish[message] = part, finish, finish
    if queues.head[worker] < 0:
        queues.head[worker] = message
    else:
        queues.follower[queues.tail[worker]] = message
    queues.tail[worker] = message
    queues.length[worker] += 1
    queues.assigned[worker] += 1
    queues.latency[worker] += finish - time
    return float(finish)


@inlined
def acknowledge(queues: Queues, worker: int) -> int:
    """Remove the first message from the queue of a worker and return it."""
    message = queues.head[worker]
    queues.head[worker] = queues.follower[message]
    queues.length[worker] -= 1
    return int(message)


@compiled
def acknowledge_until(queues: Queues, time: float) -> None:
    """Remove all messages that finish at or before a time."""
    for worker in range(len(queues.head)):
        while queues.head[worker] >= 0 and queues.finish[queues.head[worker]] <= time:
            acknowledge(queues, worker)


@compiled
def serve(queues: Queues, workers: Ints, first: int) -> None:
    """Append messages from `first` on to the queues of their workers, int64[c]."""
    for index in range(len(workers)):
        enqueue(queues, first + index, workers[index])


@compiled
def count_pairs(numbers: SmallInts, workers: Ints, pairs: Bits) -> int:
    """Return how many pairs of key and worker are new; `pairs` uint64[k, w] has a bit for each."""
    new = 0
    for index in range(len(numbers)):
        worker = workers[index]
        word, bit = worker >> 6, np.uint64(1) << np.uint64(worker & 63)
        if not pairs[numbers[index], word] & bit:
            pairs[numbers[index], word] |= bit
            new += 1
    return new


@compiled
def count_partial_results(
    numbers: SmallInts,
    workers: Ints,
    first: int,
    period: int,
    pairs: Bits,
    touched: Ints,
) -> int:
    """Return how many partial results messages from `first` on add.

    In each period of `period` messages every worker emits one result for each of its keys. `pairs`
    has a bit for each pair of the present period, `touched` int64[period + 1] its words that are
    not 0, their number last.
    """
    results = 0
    width = pairs.shape[1]
    for index in range(len(numbers)):
        if (first + index) % period == 0:
            for place in range(touched[period]):
                pairs[touched[place] // width, touched[place] % width] = 0
            touched[period] = 0
        key, worker = numbers[index], workers[index]
        word, bit = worker >> 6, np.uint64(1) << np.uint64(worker & 63)
        if pairs[key, word] & bit:
            continue
        if not pairs[key, word]:
            touched[touched[period]] = np.int64(key) * width + word
            touched[period] += 1
        pairs[key, word] |= bit
        results += 1
    return results


class Signals(NamedTuple):
    """Signals that ride on acknowledgements.

    `signal` float64[n]: the newest of each worker; `unseen` int64[n]: sources that have not
    received it; `seen` bool[s, n]: those that have; `evidence` float64[2, n], see
    `signal_workers`; `slot` int64[n]: messages of each worker in the present time slot; `due`
    float64[1]: when the next acknowledgement with a signal is sent.
    """

    signal: Floats
    unseen: Ints
    seen: Flags
    evidence: Floats
    slot: Ints
    due: Floats


def new_signals(sources: int, workers: int) -> Signals:
    """Return no signals."""
    return Signals(
        signal=np.zeros(workers),
        unseen=np.zeros(workers, np.int64),
        seen=np.ones((sources, workers), np.bool_),
        evidence=np.zeros((2, workers)),
        slot=np.zeros(workers, np.int64),
        due=np.full(1, np.inf),
    )


@compiled
def next_with_signal(queues: Queues, signals: Signals) -> int:
    """Return the worker whose next acknowledgement carries a signal and is the first of all.

    -1 if there is none.
    """
    earliest = NOTHING
    for worker in range(len(signals.signal)):
        if signals.unseen[worker] == 0 or queues.head[worker] < 0:
            continue
        finish = queues.finish[queues.head[worker]]
        if earliest < 0 or finish < queues.finish[queues.head[earliest]]:
            earliest = worker
    return earliest
