"""Sets of servers as bits of 64-bit words: server j is bit j % 64 of word j // 64."""

import numpy as np
from numpy.typing import NDArray

from algorithms.compiled import compiled

Words = NDArray[np.uint64]


_DE_BRUIJN = 0x03F79D71B4CB0A89
_SHIFT = np.uint64(58)
_FACTOR = np.uint64(_DE_BRUIJN)
_POSITIONS = np.empty(64, np.int64)
_POSITIONS[[(_DE_BRUIJN << bit) % 2**64 >> 58 for bit in range(64)]] = np.arange(64)


@compiled
def position(bit: np.uint64) -> int:
    """Return the position of the one bit that is set, by a perfect hash of powers of two."""
    return int(_POSITIONS[(bit * _FACTOR) >> _SHIFT])


@compiled
def is_member(words: Words, server: int) -> bool:
    """Whether the server is in the set."""
    return bool((words[server >> 6] >> np.uint64(server & 63)) & np.uint64(1))


@compiled
def include(words: Words, server: int) -> None:
    """Add the server to the set."""
    words[server >> 6] |= np.uint64(1) << np.uint64(server & 63)


@compiled
def exclude(words: Words, server: int) -> None:
    """Take the server out of the set."""
    words[server >> 6] &= ~(np.uint64(1) << np.uint64(server & 63))
