"""A small hash table from keys to rows, for compiled loops."""

from typing import Final

import numpy as np

from algorithms.compiled import compiled, inlined
from algorithms.partitioning.grouping import Hashes
from algorithms.vocabulary import Ints

_EMPTY: Final = -1
_HALF = np.uint64(32)


def key_table(keys: Hashes) -> tuple[Hashes, Ints]:
    """Return a table of distinct keys: the key of each place, and its row, -1 if it is free.

    At most a quarter of the places is used, so a key that is not in it is usually recognised at
    the first place.
    """
    size = 1 << max(4, (4 * len(keys)).bit_length())
    places, rows = np.zeros(size, np.uint64), np.full(size, _EMPTY, np.int64)
    _fill(keys, places, rows)
    return places, rows


@inlined
def row_of(key: np.uint64, places: Hashes, rows: Ints) -> int:
    """Return the row of a key, -1 if it is not in the table."""
    # Hashes of keys are used modulo the number of workers as well, so the upper bits are taken.
    place = int(np.int64((key ^ (key >> _HALF)) & np.uint64(len(places) - 1)))
    while rows[place] >= 0 and places[place] != key:
        place = place + 1 if place + 1 < len(places) else 0
    return int(rows[place])


@compiled
def _fill(keys: Hashes, places: Hashes, rows: Ints) -> None:
    for row in range(len(keys)):
        place = int(np.int64((keys[row] ^ (keys[row] >> _HALF)) & np.uint64(len(places) - 1)))
        while rows[place] >= 0:
            place = place + 1 if place + 1 < len(places) else 0
        places[place], rows[place] = keys[row], row
