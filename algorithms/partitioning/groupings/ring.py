"""A consistent hash ring: a key belongs to the worker of the next point clockwise.

Every worker has points in proportion to its share. A worker that joins takes only the keys in front
of its points; the keys of a worker that leaves belong to the owners of the next points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from algorithms.compiled import compiled, inlined
from algorithms.partitioning.grouping import Hashes, Workers
from algorithms.partitioning.groupings.hash_choice import WORD, mixed_word
from algorithms.random_numbers import mixed
from algorithms.vocabulary import Floats, Ints

# Points of a worker with the average capacity: the standard deviation of its part of the ring is
# 1 / sqrt(points), 9 %. Fewer where there are so many workers that the ring were too large.
POINTS: Final = 128
_MOST_POINTS: Final = 1 << 20

# Further bits by which the worker of a position is looked up; a table fits into the first cache.
_DIRECT_BITS: Final = 3
_MOST_DIRECT_BITS: Final = 16

_STEP: Final = 0x9E3779B97F4A7C15
_STEP_WORD = np.uint64(_STEP)
_SEED: Final = 0x5851F42D4C957F2D


@dataclass(frozen=True, eq=False)
class Ring:
    """Points in ascending order, uint64[p], and the worker of each, int64[p].

    `starts`: int64[2^k]; for the upper k bits of a position, the first point from there on.
    `shift`: 64 - k. `direct`: int16[2^j]; for the upper j bits of a position, its worker, or -1 if
    further bits decide. `direct_shift`: 64 - j.
    """

    points: Hashes
    owners: Ints
    starts: Ints
    shift: np.uint64
    direct: NDArray[np.int16]
    direct_shift: np.uint64

    @classmethod
    def of(cls, names: Sequence[int], shares: Floats) -> "Ring":
        """Return the ring of workers with these names, numbers from 0; owners are their places."""
        average = min(POINTS, max(1, _MOST_POINTS // len(names)))
        counts = np.maximum(1, np.rint(shares * len(names) * average)).astype(np.int64)
        owners = np.repeat(np.arange(len(names)), counts)
        number = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        points = _points(np.asarray(names, np.uint64)[owners], number.astype(np.uint64))
        order = np.lexsort((owners, points))
        points, owners = points[order], owners[order]
        bits = max(1, int(2 * len(points) - 1).bit_length())
        starts, shift = _first_points(points, bits)
        direct_bits = min(bits + _DIRECT_BITS, max(bits, _MOST_DIRECT_BITS))
        first, direct_shift = _first_points(points, direct_bits)
        known = first == np.append(first[1:], len(points))
        direct = np.where(known, owners[first % len(points)], -1).astype(np.int16)
        return cls(points, owners, starts, shift, direct, direct_shift)


@lru_cache(maxsize=64)
def ring_of(workers: Workers) -> Ring:
    """Return the ring of workers 0 to n - 1."""
    return Ring.of(range(workers.count), workers.shares)


def position_of(key: int, part: int = 0) -> int:
    """Return the position of a key, or of one of its sub-keys: `ring_position` in plain code."""
    return mixed_word((key + part * _STEP) & WORD)


@inlined
def ring_position(key: np.uint64, part: int) -> np.uint64:
    """Return the position of a key (part 0), or of one of its sub-keys (from 1 on)."""
    return mixed(key + np.uint64(part) * _STEP_WORD)


@inlined
def place_on_ring(position: np.uint64, points: Hashes, starts: Ints, shift: np.uint64) -> int:
    """Return the first point from this position on."""
    place = int(starts[position >> shift])
    while place < len(points) and points[place] < position:
        place += 1
    return place if place < len(points) else 0


def _first_points(points: Hashes, bits: int) -> tuple[Ints, np.uint64]:
    """Return the first point from each position of so many bits on, and the shift of positions."""
    firsts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
    return np.searchsorted(points, firsts), np.uint64(64 - bits)


def _points(names: Hashes, numbers: Hashes) -> Hashes:
    """Return the position of each point, by the name of its worker and its number there."""
    result = np.empty(len(names), np.uint64)
    _hash_points(names, numbers, result)
    return result


@compiled
def _hash_points(names: Hashes, numbers: Hashes, result: Hashes) -> None:
    for point in range(len(names)):
        result[point] = mixed(mixed(names[point] + np.uint64(_SEED)) + numbers[point] * _STEP_WORD)
