"""The servers that have a row (a source or query type), and their queries that read it."""

from typing import NamedTuple

import numpy as np

from algorithms.compiled import compiled
from algorithms.placement.bits import Words, exclude, include, is_member
from algorithms.vocabulary import Ints, SmallInts

_EMPTY = -1
# A table is made larger before more of it than this is used.
_FULLEST = 0.6
_SMALLEST = 64
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class Incidence(NamedTuple):
    """Rows by server, sparse: a bit where a server has a row, a count beside it.

    `holds` uint64[rows, words]; `keys` int64[size], `counts` int32[size]: an open-addressing hash
    table of row * 64 words + server, empty where nothing ever leaves and counts are of no use;
    `used` int64[1]: keys in the table, also those whose count fell to 0.
    """

    holds: Words
    keys: Ints
    counts: SmallInts
    used: Ints


def new_incidence(rows: int, servers: int, entries: int) -> Incidence:
    """Return an empty incidence with room for so many entries; 0: without counts."""
    holds = np.zeros((rows, -(-max(servers, 1) // 64)), np.uint64)
    return _empty(holds, _size_for(entries) if entries else 0)


def _empty(holds: Words, size: int) -> Incidence:
    return Incidence(holds, np.full(size, _EMPTY), np.zeros(size, np.int32), np.zeros(1, np.int64))


def has_room(incidence: Incidence, entries: int) -> bool:
    """Return whether there is room for so many more entries."""
    return bool(incidence.used[0] + entries <= _FULLEST * len(incidence.keys))


def with_room(incidence: Incidence, entries: int) -> Incidence:
    """Return the incidence with room for so many more entries, without those of count 0."""
    live = int((incidence.counts > 0).sum())
    return _rebuilt(incidence, incidence.holds, _size_for(2 * live + entries))


def with_words(incidence: Incidence, words: int) -> Incidence:
    """Return the incidence with so many words per row."""
    holds = np.pad(incidence.holds, ((0, 0), (0, words - incidence.holds.shape[1])))
    return _rebuilt(incidence, holds, len(incidence.keys))


def _rebuilt(incidence: Incidence, holds: Words, size: int) -> Incidence:
    live = incidence.counts > 0
    rows, servers = np.divmod(incidence.keys[live], incidence.holds.shape[1] << 6)
    rebuilt = _empty(holds, size)
    _insert(rebuilt, rows * (holds.shape[1] << 6) + servers, incidence.counts[live])
    return rebuilt


def _size_for(entries: int) -> int:
    return max(_SMALLEST, 1 << int(np.ceil(np.log2(max(entries, 1) / _FULLEST))))


@compiled
def count_in(
    holds: Words, keys: Ints, counts: SmallInts, used: Ints, row: int, server: int, queries: int
) -> bool:
    """Count more queries of the server for the row; return whether they are its first."""
    first = not is_member(holds[row], server)
    if first:
        include(holds[row], server)
    if len(keys):
        slot = _slot(keys, (row * holds.shape[1] << 6) + server, used)
        counts[slot] += queries
    return first


@compiled
def count_out(
    holds: Words, keys: Ints, counts: SmallInts, used: Ints, row: int, server: int
) -> bool:
    """Count one query less of the server for the row; return whether it was its last."""
    slot = _slot(keys, (row * holds.shape[1] << 6) + server, used)
    counts[slot] -= 1
    if counts[slot] == 0:
        exclude(holds[row], server)
        return True
    return False


@compiled
def count_of(holds: Words, keys: Ints, counts: SmallInts, row: int, server: int) -> int:
    """Return the number of the server's queries for the row."""
    if not is_member(holds[row], server):
        return 0
    return int(counts[_slot(keys, (row * holds.shape[1] << 6) + server, np.zeros(1, np.int64))])


@compiled
def _slot(keys: Ints, key: int, used: Ints) -> int:
    """Return the slot of the key, a free one if it has none."""
    mask = len(keys) - 1
    slot = int((np.uint64(key) * _SPREAD) >> np.uint64(32)) & mask
    while keys[slot] != key:
        if keys[slot] == _EMPTY:
            keys[slot] = key
            used[0] += 1
            break
        slot = (slot + 1) & mask
    return slot


@compiled
def _insert(incidence: Incidence, keys: Ints, counts: SmallInts) -> None:
    for index in range(len(keys)):
        incidence.counts[_slot(incidence.keys, keys[index], incidence.used)] = counts[index]
