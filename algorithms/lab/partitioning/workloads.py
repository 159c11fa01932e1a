"""Streams of keyed messages: Zipf, drifting keys, and the bursty rate of figure 12 of paper 001."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.errors import BadProblem
from algorithms.partitioning.grouping import Hashes
from algorithms.partitioning.replay import key_hashes
from algorithms.vocabulary import Floats, Ints, Seed, SmallInts

# Section 6.4.1 of paper 001.
LOWEST_RATE: Final = 18_000
HIGHEST_RATE: Final = 22_000
JUMP: Final = 5
JUMP_PROBABILITY: Final = 0.1

MAX_MESSAGES: Final = 100_000_000
MAX_KEYS: Final = 10_000_000


@dataclass(frozen=True, eq=False)
class Stream:
    """Messages in order of arrival.

    `numbers` int32[m]: the number of each message's key, from 0; `hashes` uint64[k]: the hash of
    each key; `times` int64[m]: milliseconds, None if messages have no times.
    """

    numbers: SmallInts
    hashes: Hashes
    times: Ints | None = None

    @property
    def keys(self) -> Hashes:
        """Return the hash of each message's key, uint64[m]."""
        return self.hashes[self.numbers]

    def __len__(self) -> int:
        return len(self.numbers)

    def first(self, messages: int) -> "Stream":
        """Return the first messages; a shorter stream is replayed from its beginning.

        A replay continues with times after those of the stream.
        """
        if messages <= len(self):
            times = None if self.times is None else self.times[:messages]
            return Stream(self.numbers[:messages], self.hashes, times)
        numbers = np.resize(self.numbers, messages)
        if self.times is None:
            return Stream(numbers, self.hashes)
        replays = np.arange(messages) // len(self)
        duration = self.times[-1] - self.times[0] + 1
        return Stream(numbers, self.hashes, np.resize(self.times, messages) + replays * duration)


def zipf_shares(z: float, distinct: int) -> Floats:
    """Return the probability of each rank, float64[distinct] (paper 002, section 6)."""
    weights = np.arange(1, distinct + 1, dtype=np.float64) ** -z
    return np.asarray(weights / weights.sum())


def draw_zipf(z: float, distinct: int, messages: int, seed: Seed = 0) -> Stream:
    """Return messages with keys drawn from a Zipf law; key 0 is the most frequent.

    The seed draws the keys and their hashes. Raises `BadProblem` outside of the limits.
    """
    _check("distinct", distinct, MAX_KEYS)
    _check("messages", messages, MAX_MESSAGES)
    rng = np.random.default_rng(seed)
    hashes = key_hashes(distinct, int(rng.integers(2**31)))
    return Stream(_draw_ranks(rng, z, distinct, messages), hashes)


def draw_drifting(
    z: float, distinct: int, messages: int, phases: int, shift: int, seed: Seed = 0
) -> Stream:
    """Return a Zipf stream whose frequent keys change: rank r of phase p is key r + p `shift`.

    The phases have equal lengths. Raises `BadProblem` outside of the limits.
    """
    _check("phases", phases, messages)
    stream = draw_zipf(z, distinct, messages, seed)
    phase = np.arange(messages, dtype=np.int64) * phases // messages
    numbers = ((stream.numbers + phase * shift) % distinct).astype(np.int32)
    return Stream(numbers, stream.hashes)


def draw_burst_rates(seconds: int, seed: Seed = 0) -> Ints:
    """Return messages per second, int64[seconds], as in figure 12 of paper 001.

    The rate is uniform between 18,000 and 22,000; in each second it is 5 times as high with
    probability 0.1.
    """
    _check("seconds", seconds, 3_600)
    rng = np.random.default_rng(seed)
    rates: Ints = rng.integers(LOWEST_RATE, HIGHEST_RATE + 1, seconds)
    return np.where(rng.random(seconds) < JUMP_PROBABILITY, JUMP * rates, rates)


def spread_evenly(rates: Ints) -> Ints:
    """Return the time of each message in ms, int64[sum of rates], even within each second."""
    second = np.repeat(np.arange(len(rates)), rates)
    place = np.arange(len(second)) - np.repeat(np.cumsum(rates) - rates, rates)
    return second * 1_000 + place * 1_000 // rates[second]


def _draw_ranks(rng: np.random.Generator, z: float, distinct: int, messages: int) -> SmallInts:
    upper = np.cumsum(zipf_shares(z, distinct))
    upper[-1] = 1.0
    return np.searchsorted(upper, rng.random(messages), side="right").astype(np.int32)


def _check(where: str, number: int, most: int) -> None:
    if not 1 <= number <= most:
        raise BadProblem(where, f"must be from 1 to {most:,}, not {number:,}")
