"""Two choices for every key: partial key grouping (paper 002, section 2).

A key has two workers; each of its records goes to the one with the smaller load, as the
sender knows it. So two workers share a hot key, and their partial results must be merged.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from algorithms.compiled import compiled

# Makes the second hash of a key from its first.
_OTHER: Final = np.uint64(0xD6E8FEB86659FD93)


def choices_of(
    hashes: NDArray[np.uint64], workers: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and second worker of each key; they differ if there are two workers."""
    count = np.uint64(workers)
    first = (hashes % count).astype(np.int64)
    with np.errstate(over="ignore"):
        mixed = (hashes ^ (hashes >> np.uint64(29))) * _OTHER
    mixed ^= mixed >> np.uint64(32)
    if workers == 1:
        return first, first
    step = 1 + (mixed % np.uint64(workers - 1)).astype(np.int64)
    return first, (first + step) % workers


@compiled
def less_loaded(
    first: NDArray[np.int64], second: NDArray[np.int64], load: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return, record by record, the less loaded of its two workers; the first of equal ones.

    `load`: float64[workers], the load before; every record adds 1 to that of its worker.
    """
    load, chosen = load.copy(), np.empty_like(first)
    for record in range(len(first)):
        worker = first[record] if load[first[record]] <= load[second[record]] else second[record]
        chosen[record] = worker
        load[worker] += 1.0
    return chosen
