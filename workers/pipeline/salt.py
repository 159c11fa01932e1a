"""Which key makes Spark hash a node's rows to the partition of the same number.

Spark sends a row of key `k` to partition `pmod(murmur3(k), N)` before a stateful operator and
offers no way to choose. So each node gets the smallest integer whose hash falls on it: node i
then is partition i, its state one state store, and no two nodes ever share a partition.
"""

from functools import cache
from itertools import count
from typing import Final

_SEED: Final = 42  # Spark's constant for hash partitioning
_MASK: Final = 0xFFFFFFFF


@cache
def node_keys(slots: int) -> tuple[int, ...]:
    """Return the key of each node 0..slots-1."""
    found: dict[int, int] = {}
    for key in count():
        found.setdefault(partition_of(key, slots), key)
        if len(found) == slots:
            return tuple(found[node] for node in range(slots))
    raise AssertionError("count() does not end")


@cache
def node_of_key(slots: int) -> dict[int, int]:
    """Return the node of each key of `node_keys`."""
    return {key: node for node, key in enumerate(node_keys(slots))}


def partition_of(key: int, slots: int) -> int:
    """Return the shuffle partition of an integer key among `slots` (Spark's `pmod(hash(k), n)`)."""
    value = _murmur3_int(key)
    return (value - (1 << 32) if value & 0x80000000 else value) % slots


def _murmur3_int(key: int) -> int:
    """Return MurmurHash3 x86_32 of one 32-bit integer."""
    mixed = _rotate(key * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    value = (_rotate(_SEED ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    value ^= 4  # length of the key in bytes
    value = (value ^ value >> 16) * 0x85EBCA6B & _MASK
    value = (value ^ value >> 13) * 0xC2B2AE35 & _MASK
    return value ^ value >> 16


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
