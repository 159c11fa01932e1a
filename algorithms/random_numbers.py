"""Random numbers inside compiled code: splitmix64, whose whole state is one number."""

import numpy as np
from numpy.typing import NDArray

from algorithms.compiled import compiled

Words = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)


def new_state(seed: int) -> Words:
    """Return the state of a generator: uint64[1], changed by every draw."""
    return np.array([seed % 2**64], np.uint64)


@compiled
def next_word(state: Words) -> np.uint64:
    """Return 64 random bits."""
    state[0] += _STEP
    return mixed(state[0])


@compiled
def mixed(word: np.uint64) -> np.uint64:
    """Return 64 bits that each depend on all of a word: the mixing of splitmix64."""
    word = (word ^ (word >> np.uint64(30))) * _MIX_1
    word = (word ^ (word >> np.uint64(27))) * _MIX_2
    return word ^ (word >> np.uint64(31))


@compiled
def below(state: Words, bound: int) -> int:
    """Return a whole number from 0 to bound - 1, for bounds up to 2 ** 32."""
    return int(np.int64(((next_word(state) >> _HALF) * np.uint64(bound)) >> _HALF))


@compiled
def unit(state: Words) -> float:
    """Return a number from 0 to 1, without 1."""
    return np.float64(next_word(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)
