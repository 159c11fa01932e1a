"""Sets of servers as bits of 64-bit words: server j is bit j % 64 of word j // 64."""

import numpy as np
from numpy.typing import NDArray

from algorithms.compiled import compiled

Words = NDArray[np.uint64]


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
