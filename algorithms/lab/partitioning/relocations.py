"""Keys whose worker changes when workers join or leave (paper 001, section 6.4.3, figure 13)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from algorithms.checks import as_integers, check_count, refuse_first
from algorithms.compiled import compiled
from algorithms.errors import BadProblem
from algorithms.partitioning.grouping import MAX_WORKERS, Hashes
from algorithms.partitioning.groupings.ring import Ring, place_on_ring, ring_position
from algorithms.vocabulary import Ints


@dataclass(frozen=True)
class Relocations:
    """Relocated keys of so many `keys`.

    `basic`: with the hash modulo the number of workers; `ring`: with consistent hashing;
    `necessary`: keys on the ring whose worker left, and those of workers that joined.
    """

    keys: int
    basic: int
    ring: int
    necessary: int


def key_relocations(keys: Hashes, before: Sequence[int], after: Sequence[int]) -> Relocations:
    """Return the keys that are relocated when the workers `before` become those `after`.

    Workers are named by whole numbers from 0, in the order in which basic hashing counts them.
    Raises `BadProblem`.
    """
    old, new = _names("before", before), _names("after", after)
    basic = old[(keys % np.uint64(len(old))).astype(np.int64)]
    basic_after = new[(keys % np.uint64(len(new))).astype(np.int64)]
    ring, ring_after = _on_ring(keys, old), _on_ring(keys, new)
    necessary = ~np.isin(ring, new) | ~np.isin(ring_after, old)
    return Relocations(
        len(keys),
        int((basic != basic_after).sum()),
        int((ring != ring_after).sum()),
        int(necessary.sum()),
    )


def _on_ring(keys: Hashes, names: Ints) -> Ints:
    ring = Ring.of(names.tolist(), np.full(len(names), 1.0 / len(names)))
    result = np.empty(len(keys), np.int64)
    _owners_on_ring(keys, ring.points, ring.owners, ring.starts, ring.shift, result)
    return names[result]


def _names(where: str, names: Sequence[int]) -> Ints:
    values = as_integers(where, names)
    check_count(f"{where} (workers)", len(values))
    if len(values) > MAX_WORKERS:
        raise BadProblem(where, f"must have at most {MAX_WORKERS:,} workers")
    refuse_first(where, values, values < 0, "must be at least 0, not {}")
    if len(np.unique(values)) < len(values):
        raise BadProblem(where, "names a worker twice")
    return values


@compiled
def _owners_on_ring(
    keys: Hashes, points: Hashes, owners: Ints, starts: Ints, shift: np.uint64, result: Ints
) -> None:
    """Write the worker of each key into `result`."""
    for message in range(len(keys)):
        position = ring_position(keys[message], 0)
        result[message] = owners[place_on_ring(position, points, starts, shift)]
