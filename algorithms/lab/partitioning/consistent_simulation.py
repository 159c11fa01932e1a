"""Consistent grouping in the queueing simulation: signals ride on acknowledgements.

Message i comes from source i modulo s and arrives at time i. Every slot, each worker compares its
utilisation with the thresholds; a source receives the signal with the first acknowledgement that
the worker sends it afterwards, for any message (paper 002, section 5.3).
"""

import numpy as np

from algorithms.compiled import compiled, inlined
from algorithms.lab.partitioning.queueing import (
    Hashes,
    Queues,
    Signals,
    acknowledge,
    acknowledge_until,
    enqueue,
    next_with_signal,
)
from algorithms.partitioning.virtual_workers import (
    Rules,
    Views,
    choose_virtual_worker,
    pair_workers,
    receive_signal,
    signal_workers,
)
from algorithms.vocabulary import Ints, SmallInts


@compiled
def route_and_serve(
    numbers: SmallInts,
    hashes: Hashes,
    first: int,
    slot: int,
    views: Views,
    signals: Signals,
    queues: Queues,
    rules: Rules,
    workers: Ints,
) -> int:
    """Route messages from `first` on and append them to queues; return how many moves there were.

    `workers` int64[c] receives the worker of each message.
    """
    sources, moves = len(views.routed), 0
    for index in range(len(numbers)):
        message = first + index
        if signals.due[0] <= message:
            moves += deliver_until(float(message), views, signals, queues, rules)
        source = message % sources
        key = hashes[numbers[index]] + rules.seed
        load = views.load[source]
        virtual = choose_virtual_worker(key, load, views.routed[source], rules.room)
        load[virtual] += 1
        views.routed[source] += 1
        worker = views.owner[source, virtual]
        workers[index] = worker
        finish = enqueue(queues, message, worker)
        if signals.unseen[worker] > 0:
            signals.due[0] = min(signals.due[0], finish)
        signals.slot[worker] += 1
        if (message + 1) % slot == 0:
            time = float(message + 1)
            moves += deliver_until(time, views, signals, queues, rules)
            acknowledge_until(queues, time)
            _end_slot(time, slot, signals, queues, rules)
    return moves


@compiled
def deliver_until(time: float, views: Views, signals: Signals, queues: Queues, rules: Rules) -> int:
    """Deliver the signals on acknowledgements until a time; return how many moves they cause.

    Before any acknowledgement of that time is removed otherwise: its signal would be lost.
    """
    sources, moves = len(views.routed), 0
    while True:
        worker = next_with_signal(queues, signals)
        if worker < 0:
            signals.due[0] = np.inf
            return moves
        signals.due[0] = queues.finish[queues.head[worker]]
        if signals.due[0] > time:
            return moves
        source = acknowledge(queues, worker) % sources
        if signals.seen[source, worker]:
            continue
        signals.seen[source, worker] = True
        signals.unseen[worker] -= 1
        receive_signal(views, source, worker, signals.signal[worker], rules.most)
        moves += pair_workers(views, source, rules)


@inlined
def _end_slot(time: float, slot: int, signals: Signals, queues: Queues, rules: Rules) -> None:
    """Let every worker compare its utilisation in the slot with the thresholds.

    Without hysteresis a worker within the thresholds sends nothing; with it, it withdraws its
    earlier signal.
    """
    part = np.searchsorted(queues.starts, time, side="left") - 1
    utilisation = signals.slot / (slot * queues.capacity[part])
    current = signal_workers(utilisation, signals.slot, signals.evidence, rules)
    for worker in range(len(current)):
        withdrawn = rules.hysteresis > 0 and current[worker] == 0.0 and signals.signal[worker] != 0
        signals.signal[worker] = current[worker]
        signals.slot[worker] = 0
        sent = current[worker] != 0.0 or withdrawn
        signals.unseen[worker] = signals.seen.shape[0] if sent else 0
        signals.seen[:, worker] = not sent
    worker = next_with_signal(queues, signals)
    signals.due[0] = queues.finish[queues.head[worker]] if worker >= 0 else np.inf
