"""Workers drawn from the bits of a hash, in proportion to their shares.

A hash modulo the number of workers names a slot. With unequal shares each slot has a worker of its
own and another one (the alias method of Walker): further bits of the hash decide between them. With
equal shares every slot belongs to its worker alone, so the worker is the hash modulo their number.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.compiled import compiled
from algorithms.partitioning.grouping import Hashes, Workers
from algorithms.random_numbers import mixed
from algorithms.vocabulary import Ints

WORD: Final = 2**64 - 1
_LOW: Final = 2**32 - 1
_LOW_BITS = np.uint64(_LOW)
_HALF = np.uint64(32)
# As thresholds are compared with 32 bits, none of which is above it.
_ALWAYS: Final = 2**32


@dataclass(frozen=True, eq=False)
class SlotTable:
    """Who has the slots: with 32 bits below `thresholds`, slot w is worker w, else `others[w]`.

    `thresholds`: uint64[n]; `others`: int64[n]; both of length 0 if all shares are equal.
    """

    count: int
    thresholds: Hashes
    others: Ints

    @classmethod
    def of(cls, workers: Workers) -> "SlotTable":
        """Return the table of these workers."""
        if workers.equal:
            return cls(workers.count, np.empty(0, np.uint64), np.empty(0, np.int64))
        thresholds = np.full(workers.count, _ALWAYS, np.uint64)
        others = np.arange(workers.count)
        parts = (workers.shares * workers.count).tolist()
        small = [w for w, part in enumerate(parts) if part < 1.0]
        large = [w for w, part in enumerate(parts) if part >= 1.0]
        while small and large:
            low, high = small.pop(), large[-1]
            thresholds[low] = min(_ALWAYS, round(parts[low] * _ALWAYS))
            others[low] = high
            parts[high] -= 1.0 - parts[low]
            if parts[high] < 1.0:
                small.append(large.pop())
        return cls(workers.count, thresholds, others)

    def worker(self, slot: int, bits: int) -> int:
        """Return the worker of a slot: `slot_worker` in plain code."""
        if len(self.others) and (bits & _LOW) >= int(self.thresholds[slot]):
            return int(self.others[slot])
        return slot


def mixed_word(word: int) -> int:
    """Return the mixing of splitmix64 of a word: `algorithms.random_numbers.mixed`, plain."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & WORD
    return word ^ (word >> 31)


@compiled
def high_product(a: np.uint64, b: np.uint64) -> np.uint64:
    """Return the upper 64 bits of the product of two numbers of 64 bits."""
    a_low, a_high = a & _LOW_BITS, a >> _HALF
    b_low, b_high = b & _LOW_BITS, b >> _HALF
    middle = a_high * b_low + ((a_low * b_low) >> _HALF)
    other = a_low * b_high + (middle & _LOW_BITS)
    return a_high * b_high + (middle >> _HALF) + (other >> _HALF)


def reciprocal(divisor: int) -> np.uint64:
    """Return the factor with which `remainder` divides by a number from 1 on."""
    return np.uint64(WORD // divisor)


@compiled
def remainder(word: np.uint64, divisor: np.uint64, factor: np.uint64) -> np.uint64:
    """Return word modulo divisor without a division, which is ten times slower.

    2^64 minus `factor` times divisor is from 1 to divisor, so the quotient is at most 1 too low. A
    branch for that case would often be predicted wrongly.
    """
    rest = word - high_product(word, factor) * divisor
    return rest - divisor * np.uint64(rest >= divisor)


@compiled
def slot_worker(slot: int, bits: np.uint64, thresholds: Hashes, others: Ints) -> int:
    """Return the worker of a slot of unequal shares, by further bits of the hash."""
    return slot + (int(others[slot]) - slot) * int((bits & _LOW_BITS) >= thresholds[slot])


@compiled
def high_slot(bits: np.uint64, count: int) -> int:
    """Return a slot by the upper 32 bits of a word."""
    return int(np.int64(((bits >> _HALF) * np.uint64(count)) >> _HALF))


@compiled
def low_slot(bits: np.uint64, count: int) -> int:
    """Return a slot by the lower 32 bits of a word."""
    return int(np.int64(((bits & _LOW_BITS) * np.uint64(count)) >> _HALF))


@compiled
def hashed_workers(keys: Hashes, factor: np.uint64, count: int, thresholds: Hashes, others: Ints,
                   workers: Ints) -> None:  # fmt: skip
    """Write the worker of each key, by its hash alone, into `workers`: int64[m]."""
    divisor = np.uint64(count)
    if not len(others):
        for message in range(len(keys)):
            workers[message] = np.int64(remainder(keys[message], divisor, factor))
        return
    for message in range(len(keys)):
        key = keys[message]
        slot = int(np.int64(remainder(key, divisor, factor)))
        workers[message] = slot_worker(slot, mixed(key), thresholds, others)
