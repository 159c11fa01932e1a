"""What each grouping decides, message by message: independent plain code beside the compiled."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np

from algorithms.partitioning.consistent_grouping import ConsistentGrouping, VirtualState
from algorithms.partitioning.grouping import GroupingState, Workers
from algorithms.partitioning.groupings import head_aware, rate_aware
from algorithms.partitioning.groupings.bounded_load import BoundedLoad
from algorithms.partitioning.groupings.frequency_aware import FrequencyAware, FrequencyState
from algorithms.partitioning.groupings.hash_choice import WORD, mixed_word
from algorithms.partitioning.groupings.head_aware import HeadAware, HeadState
from algorithms.partitioning.groupings.key import KeyGrouping, slot_table
from algorithms.partitioning.groupings.key_frequencies import KeyFrequencies
from algorithms.partitioning.groupings.load_state import LoadState, room_per_message
from algorithms.partitioning.groupings.panes import Panes, PaneState, pane_size
from algorithms.partitioning.groupings.partial_key import PartialKeyGrouping, two_workers
from algorithms.partitioning.groupings.random_choices import PAIRS_PER_WORKER, RandomChoices
from algorithms.partitioning.groupings.rate_aware import RECENT, OpenPanes, RateAware, RateState
from algorithms.partitioning.groupings.ring import Ring, position_of, ring_of
from algorithms.partitioning.groupings.shuffle import ShuffleGrouping
from algorithms.partitioning.groupings.two_choices import TwoChoices

STEP = 0x9E3779B97F4A7C15
LOW = 2**32 - 1


def choose(grouping: Any, state: Any, key: int, time_ms: int | None = None) -> tuple[int, Any]:
    """Return the worker of a single message, and the state after it."""
    return _CHOICES[type(grouping)](grouping, state, key, time_ms)


def by_key(_: KeyGrouping, state: GroupingState, key: int, __: object) -> tuple[int, GroupingState]:
    count = state.workers.count
    return slot_table(state.workers).worker(key % count, mixed_word(key)), state


def in_turn(_: ShuffleGrouping, state: LoadState, __: int, ___: object) -> tuple[int, LoadState]:
    workers = state.workers
    if workers.equal:
        return (worker := state.routed % workers.count), with_message(state, worker)
    after = (state.load + 1) * (1.0 / workers.shares)
    worker = min(range(workers.count), key=after.tolist().__getitem__)
    return worker, with_message(state, worker)


def less_loaded(state: LoadState, first: int, second: int) -> tuple[int, LoadState]:
    """Return the first of two workers unless the second has a smaller load over capacity."""
    loads = [
        (int(state.load[w]) + int(state.waiting[w]) + 1) * (1.0 / float(state.workers.shares[w]))
        for w in (first, second)
    ]
    worker = first if loads[0] <= loads[1] else second
    return worker, with_message(state, worker)


def by_pair(_: PartialKeyGrouping, state: LoadState, key: int, __: object) -> tuple[int, LoadState]:
    return less_loaded(state, *two_workers(state.workers, key))


def of_two_drawn(
    grouping: TwoChoices, state: LoadState, key: int, _: object
) -> tuple[int, LoadState]:
    count, table = state.workers.count, slot_table(state.workers)
    word = mixed_word((mixed_word(grouping.seed) + (state.routed + 1) * STEP) & WORD ^ key)
    further = mixed_word(word)
    slots = (word >> 32) * count >> 32, (word & LOW) * count >> 32
    return less_loaded(
        state, table.worker(slots[0], further), table.worker(slots[1], further >> 32)
    )


def by_random_sequence(
    grouping: RandomChoices, state: LoadState, key: int, _: object
) -> tuple[int, LoadState]:
    return first_with_room(grouping.eps, state, random_sequence(grouping, state.workers, key))


def by_ring(grouping: BoundedLoad, state: LoadState, key: int, _: object) -> tuple[int, LoadState]:
    ring = ring_of(state.workers)
    clockwise = np.roll(ring.owners, -place_on_ring(ring, position_of(key))).tolist()
    return first_with_room(grouping.eps, state, clockwise)


def first_with_room(eps: float, state: LoadState, sequence: Iterable[int]) -> tuple[int, LoadState]:
    """Return the first worker with room of a sequence of workers, and the state after it."""
    total = state.total.tolist()
    room, messages = room_per_message(eps, state.workers).tolist(), sum(total) + 1
    for worker in sequence:
        if total[worker] < room[worker] * messages:
            return worker, with_message(state, worker)
    raise AssertionError("a worker below the mean load always has room")


def random_sequence(grouping: RandomChoices, workers: Workers, key: int) -> Iterator[int]:
    """Yield the workers of a key in the order in which they are tried."""
    table, worker = slot_table(workers), 0
    word = (key + mixed_word(grouping.seed)) & WORD
    for _ in range(PAIRS_PER_WORKER * workers.count):
        word = (word + STEP) & WORD
        pair, further = mixed_word(word), mixed_word(mixed_word(word))
        yield table.worker((pair >> 32) * workers.count >> 32, further)
        worker = table.worker((pair & LOW) * workers.count >> 32, further >> 32)
        yield worker
    for step in range(1, workers.count + 1):
        yield (worker + step) % workers.count


def by_frequency(
    grouping: FrequencyAware, state: FrequencyState, key: int, _: object
) -> tuple[int, FrequencyState]:
    split, next_parts = state.split, state.next_parts
    divided = split.keys.tolist()
    if key in divided:
        row = divided.index(key)
        first, stop = int(split.starts[row]), int(split.starts[row + 1])
        worker = int(split.owners[first + int(next_parts[row])])
        next_parts = next_parts.copy()
        next_parts[row] = (next_parts[row] + 1) % (stop - first)
    else:
        ring = ring_of(state.workers)
        worker = int(ring.owners[place_on_ring(ring, position_of(key))])
    observed = observed_key(state.frequencies, key, grouping.period)
    return worker, grouping._after(replace(state, next_parts=next_parts), observed)


def by_head(grouping: HeadAware, state: HeadState, key: int, _: object) -> tuple[int, HeadState]:
    total, count, hot = state.loads.total.tolist(), state.workers.count, state.hot
    shares, messages = state.workers.shares.tolist(), sum(total) + 1

    def load(worker: int) -> float:
        """Return the load over capacity share of a worker after the message."""
        return float((total[worker] + 1) * (1.0 / shares[worker]))

    hot_keys = hot.keys.tolist()
    if key in hot_keys:
        row = hot_keys.index(key)
        first, step, choices = int(hot.firsts[row]), int(hot.steps[row]), int(hot.choices[row])
        worker = min(((first + j * step) % count for j in range(choices)), key=load)
        while load(worker) > messages + head_aware._HOT_MARGIN * count and choices < count:
            worker = min(worker, (first + choices * step) % count, key=load)
            choices += 1
        changed = hot.choices.copy()
        changed[row] = choices
        state = replace(state, hot=replace(hot, choices=changed))
    else:
        worker, second = two_workers(state.workers, key)
        limit = messages * (1.0 + grouping.eps) + head_aware._MARGIN * count
        if load(worker) > limit and load(second) < load(worker):
            if mixed_word(key) >> head_aware._MOVABLE_SHIFT < int(state.movable[worker]):
                worker = second
            else:
                movable = state.movable.copy()
                more = int(head_aware._CLASSES * (load(worker) / limit - 1.0))
                movable[worker] = min(int(head_aware._CLASSES), movable[worker] + 1 + more)
                state = replace(state, movable=movable)
    state = replace(state, loads=with_message(state.loads, worker))
    return worker, grouping._after(state, observed_key(state.frequencies, key, grouping.period))


def by_pane(
    grouping: Panes, state: PaneState, _: int, time_ms: int | None
) -> tuple[int, PaneState]:
    workers, time = state.workers, state.routed if time_ms is None else time_ms
    pane = time // pane_size(grouping.window_ms, grouping.slide_ms)
    worker = pane % workers.count
    if not workers.equal:
        bounds = np.cumsum(workers.shares)[:-1].tolist()
        worker = bisect_right(bounds, float(pane * STEP & WORD) / 2.0**64)
    return worker, replace(state, routed=state.routed + 1)


def by_rate(
    grouping: RateAware, state: RateState, _: int, time_ms: int | None
) -> tuple[int, RateState]:
    time = state.loads.routed if time_ms is None else time_ms
    panes, newest = state.panes.copied(), max(state.panes.number.tolist())
    pane = max(time // grouping._pane, newest - grouping.open_panes + 1)
    count = panes.count
    if pane > newest:
        old = [n for n in panes.number.tolist() if n != rate_aware._NO_PANE]
        for number in sorted(n for n in old if n <= pane - grouping.open_panes):
            place = number % grouping.open_panes
            panes.closed[count % RECENT] = number
            panes.sizes[count % RECENT] = panes.size[place]
            panes.number[place], count = rate_aware._NO_PANE, count + 1
        state = without_high_loads(grouping, state, panes, count)
    place = pane % grouping.open_panes
    if panes.number[place] != pane:
        panes.number[place], panes.size[place] = pane, 0
        panes.part[place], panes.worker[place] = 0, least_loaded(state)
    elif panes.part[place] >= largest_part(grouping, state, panes, count, panes.worker[place]):
        panes.part[place], panes.worker[place] = 0, least_loaded(state)
    panes.size[place] += 1
    panes.part[place] += 1
    worker = int(panes.worker[place])
    after = with_message(state.loads, worker)
    return worker, replace(state, loads=after, panes=replace(panes, count=count))


def without_high_loads(
    grouping: RateAware, state: RateState, panes: OpenPanes, count: int
) -> RateState:
    """Return the state in which no load is far above the others."""
    used = min(count, RECENT)
    if not used:
        return state
    shares, sent = state.workers.shares.tolist(), (state.loads.load - state.forgotten).tolist()
    best = least_loaded(state)
    least = sent[best] * (1.0 / shares[best])
    mean = sum(float(size) for size in panes.sizes[:used].tolist()) / used
    largest, forgotten = grouping._largest_parts(state).tolist(), state.forgotten.copy()
    for worker, load in enumerate(sent):
        above = rate_aware._PARTS_ABOVE * mean * largest[worker]
        forgotten[worker] += max(0, load - int(least / (1.0 / shares[worker]) + above))
    return replace(state, forgotten=forgotten)


def least_loaded(state: RateState) -> int:
    """Return the worker with the smallest load over capacity after a message."""
    total: list[int] = (state.loads.total - state.forgotten).tolist()
    shares = state.workers.shares.tolist()
    return min(range(len(total)), key=lambda w: (total[w] + 1) * (1.0 / shares[w]))


def largest_part(
    grouping: RateAware, state: RateState, panes: OpenPanes, count: int, worker: int
) -> float:
    """Return the largest part of a pane on a worker in messages of one source."""
    sizes = [float(size) for size in panes.sizes[: min(count, RECENT)].tolist()]
    if not sizes:
        return float("inf")
    mean, squares = sum(sizes) / len(sizes), 0.0
    for size in sizes:
        squares += (size - mean) * (size - mean)
    largest = mean * float(grouping._largest_parts(state)[worker])
    return min(mean + sqrt(squares / len(sizes)), largest) / state.sources


def by_virtual_worker(
    grouping: ConsistentGrouping, state: VirtualState, key: int, _: object
) -> tuple[int, VirtualState]:
    load, routed = state.view.load.copy(), int(state.view.routed[0])
    limit = (1.0 + grouping.eps) * (1.0 / load.shape[1]) * (routed + 1)
    sequence = virtual_sequence(grouping, load.shape[1], key)
    virtual = next(virtual for virtual in sequence if load[0, virtual] < limit)
    load[0, virtual] += 1
    view = state.view._replace(load=load, routed=np.array([routed + 1], np.int64))
    return int(state.view.owner[0, virtual]), replace(state, view=view)


def virtual_sequence(grouping: ConsistentGrouping, count: int, key: int) -> Iterator[int]:
    """Yield the virtual workers of a key in the order in which they are tried."""
    return random_sequence(RandomChoices(seed=grouping.seed), Workers.of(count), key)


def with_message(state: LoadState, worker: int) -> LoadState:
    """Return the state after a message to this worker."""
    total = state.total
    total[worker] += 1
    return state.with_total(total, 1)


def place_on_ring(ring: Ring, position: int) -> int:
    """Return the first point from this position on."""
    return int(np.searchsorted(ring.points, np.uint64(position))) % len(ring.points)


def observed_key(before: KeyFrequencies, key: int, longest: int) -> KeyFrequencies:
    """Return the frequencies after a single message."""
    block, place = divmod(before.position, before.stride)
    after = replace(before, position=before.position + 1)
    if place == mixed_word(before._seed() + block & WORD) % before.stride:
        counts = dict(zip(before.sampled.tolist(), before.counts.tolist(), strict=True))
        counts[key] = counts.get(key, 0) + 1
        rows = sorted(counts.items())
        after = replace(
            after,
            sampled=np.array([key for key, _ in rows], np.uint64),
            counts=np.array([count for _, count in rows], np.int64),
        )
    return after if after.left else after.closed(longest)


_CHOICES: dict[type[Any], Callable[..., tuple[int, Any]]] = {
    KeyGrouping: by_key,
    ShuffleGrouping: in_turn,
    PartialKeyGrouping: by_pair,
    TwoChoices: of_two_drawn,
    RandomChoices: by_random_sequence,
    BoundedLoad: by_ring,
    FrequencyAware: by_frequency,
    HeadAware: by_head,
    Panes: by_pane,
    RateAware: by_rate,
    ConsistentGrouping: by_virtual_worker,
}
