"""Shuffle grouping: messages go to the workers in turn (paper 002, section III-B)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from algorithms.compiled import compiled
from algorithms.partitioning.grouping import Messages
from algorithms.partitioning.groupings.load_state import LoadGrouping, LoadState
from algorithms.vocabulary import Floats, Ints


@dataclass(frozen=True)
class ShuffleGrouping(LoadGrouping):
    """Sends messages to all workers in turn, whatever their keys: a weighted round robin.

    With unequal capacities each message goes to the worker that has the smallest load over
    capacity after it, so no worker is ever more than one message above its share.
    """

    name: ClassVar[str] = "shuffle"

    def route(self, state: LoadState, messages: Messages) -> tuple[Ints, LoadState]:
        """Return the worker of each message, and the state after them."""
        workers = state.workers
        result, load = np.empty(len(messages), np.int64), state.load.copy()
        if workers.equal:
            in_turn(state.routed % workers.count, load, result)
        else:
            by_load(load, 1.0 / workers.shares, result)
        return result, state.with_total(load + state.waiting, len(messages))


@compiled
def in_turn(first: int, load: Ints, result: Ints) -> None:
    """Write workers `first`, `first` + 1, … of a round into `result`, and count them in `load`."""
    count = len(load)
    worker = first
    for message in range(len(result)):
        result[message] = worker
        worker = worker + 1 if worker + 1 < count else 0
    rounds, rest = len(result) // count, len(result) % count
    for step in range(count):
        load[(first + step) % count] += rounds + (1 if step < rest else 0)


@compiled
def by_load(load: Ints, scale: Floats, result: Ints) -> None:
    """Write the workers with the smallest load after each message; counts them in `load`.

    `scale`: 1 / share. A binary heap of workers: of equal ones the first by number.
    """
    count = len(load)
    heap = np.arange(count)
    value = np.empty(count)
    for worker in range(count):
        value[worker] = (load[worker] + 1) * scale[worker]
    for place in range(count // 2 - 1, -1, -1):
        _sift(heap, value, place)
    for message in range(len(result)):
        worker = heap[0]
        result[message] = worker
        load[worker] += 1
        value[worker] = (load[worker] + 1) * scale[worker]
        _sift(heap, value, 0)


@compiled
def _sift(heap: Ints, value: Floats, place: int) -> None:
    count, worker = len(heap), heap[place]
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and _is_before(value, heap[child + 1], heap[child]):
            child += 1
        if not _is_before(value, heap[child], worker):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = worker


@compiled
def _is_before(value: Floats, a: int, b: int) -> bool:
    return value[a] < value[b] or (value[a] == value[b] and a < b)
