"""What a sketch says: quantiles, distinct values and most frequent ones from its cells.

A cell is a number of a key and window. A sketch's cells add up (quantiles, top k) or keep their
largest (distinct values), so a sketch depends neither on the order of records nor on how they were
cut into batches.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

# Quantiles: values within a bucket differ by this factor, so the middle is within 1 % (DDSketch,
# Masson et al., VLDB 2019).
ACCURACY: Final = 0.01
GAMMA: Final = (1 + ACCURACY) / (1 - ACCURACY)
SMALLEST: Final = 1e-9
# Puts the buckets of negative numbers and of positive ones apart; 0 has its own.
APART: Final = 1 << 20

# Distinct values: 2 ** 12 registers, off by 1.04 / sqrt(4096) = 1.6 % (HyperLogLog, Flajolet et
# al., 2007).
REGISTER_BITS: Final = 12
REGISTERS: Final = 1 << REGISTER_BITS


def value_of_bucket(bucket: int) -> float:
    """Return the value that stands for a bucket."""
    if bucket == 0:
        return 0.0
    middle = 2 * GAMMA ** (abs(bucket) - APART) / (1 + GAMMA)
    return middle if bucket > 0 else -middle


def quantile(cells: Mapping[int, int], share: float) -> float | None:
    """Return a quantile from counts by bucket, None without any."""
    total = sum(cells.values())
    if not total:
        return None
    wanted = share * (total - 1)
    passed = 0
    for bucket in sorted(cells):
        passed += cells[bucket]
        if passed > wanted:
            return value_of_bucket(bucket)
    return value_of_bucket(max(cells))


def distinct(cells: Mapping[int, int]) -> int:
    """Return how many different values there were, from the largest rank by register."""
    ranks = np.zeros(REGISTERS)
    ranks[list(cells)] = list(cells.values())
    estimate = 0.7213 / (1 + 1.079 / REGISTERS) * REGISTERS**2 / float((2.0**-ranks).sum())
    untouched = int((ranks == 0).sum())
    if estimate <= 2.5 * REGISTERS and untouched:
        estimate = REGISTERS * math.log(REGISTERS / untouched)
    return round(estimate)


def top(counts: Mapping[Any, int], k: int) -> list[tuple[Any, int]]:
    """Return the k most frequent values with their counts, the smaller value first of equals."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:k]


FINISHERS: Final[Mapping[str, Callable[[Mapping[Any, int], float], Any]]] = {
    "quantile": quantile,
    "count_distinct": lambda cells, _: distinct(cells),
    "top_k": lambda cells, k: top(cells, int(k)),
}
