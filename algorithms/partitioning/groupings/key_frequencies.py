"""The frequent keys of a stream: sampled, counted in periods by a heavy-hitter sketch.

A period is 1,024 sampled messages: in the first period all messages are sampled, and each further
period is twice as long as the one before, up to the length that a grouping chooses. At the end of a
period the sketch `frequent_items_sketch` of Apache DataSketches counts its sample together with the
counts from before, which then weigh three quarters.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from algorithms.compiled import compiled
from algorithms.errors import BadProblem
from algorithms.partitioning.grouping import Hashes
from algorithms.partitioning.groupings.hash_choice import WORD
from algorithms.partitioning.groupings.load_state import integers
from algorithms.random_numbers import mixed
from algorithms.vocabulary import Floats, Ints, parameter

# Sampled messages of a period.
SAMPLE: Final = 1_024
# Frequent keys that are remembered, those of them that are packed, and keys of a packed sample.
KEPT: Final = 256
PACKED: Final = 160
_PACKED_SAMPLE: Final = 96
# The weight of a sampled message, and what remains of all weights after a period.
_WEIGHT: Final = 16
_REST: Final = 3, 4
# Logarithm of the size of the sketch, of which three quarters are counters: at most 384 keys.
_SKETCH_SIZE: Final = 9

_STEP: Final = 0x9E3779B97F4A7C15


def period_parameter(default: int = 16 * SAMPLE) -> Any:
    """Return the declaration of the parameter `period`."""
    return parameter(
        default, title="Period of frequent keys", unit="messages", minimum=SAMPLE, maximum=10**9,
        help="Messages after which a source determines its frequent keys again; fewer at first.",
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class KeyFrequencies:
    """The frequent keys of the closed periods and the sample of the present one.

    `hashes`, `weights`: keys, most frequent first; `total`: weight of all keys. `sampled`: distinct
    keys of the sample, ascending, with their `counts`. `position`: messages of the present period;
    `stride`: messages per sampled one; `period`: closed periods.
    """

    hashes: Hashes
    weights: Ints
    total: int
    sampled: Hashes
    counts: Ints
    position: int
    stride: int
    period: int

    @classmethod
    def empty(cls) -> "KeyFrequencies":
        """Return the frequencies before the first message."""
        words, counts = np.empty(0, np.uint64), np.empty(0, np.int64)
        return cls(words, counts, 0, words, counts, 0, 1, 0)

    @property
    def shares(self) -> Floats:
        """Return the part of each frequent key in all messages, float64[k]."""
        return self.weights / max(1, self.total)

    @property
    def left(self) -> int:
        """Return the messages up to the end of the period."""
        return SAMPLE * self.stride - self.position

    def observed(self, keys: Hashes, longest: int) -> "KeyFrequencies":
        """Return the frequencies after these messages, of which there are at most `left`.

        `longest`: messages of a period in the long run.
        """
        sampled, counts = _with_messages(
            keys, np.uint64(self._seed()), self.position, self.stride, self.sampled, self.counts
        )
        position = self.position + len(keys)
        after = replace(self, sampled=sampled, counts=counts, position=position)
        return after if after.left else after.closed(longest)

    def _seed(self) -> int:
        return self.period * _STEP & WORD

    def with_sample(self, keys: Hashes, counts: Ints, messages: int) -> "KeyFrequencies":
        """Return the frequencies after so many messages, of which these keys were sampled."""
        sampled, counts = _sums([self.sampled, keys], [self.counts, counts])
        return replace(self, sampled=sampled, counts=counts, position=self.position + messages)

    def closed(self, longest: int) -> "KeyFrequencies":
        """Return the frequencies at the start of the next period."""
        # Planners of anything else need no sketch, and no package for it.
        from datasketches import frequent_items_error_type, frequent_items_sketch  # noqa: PLC0415

        part, whole = _REST
        sketch = frequent_items_sketch(_SKETCH_SIZE)
        for key, weight in zip(self.hashes.tolist(), self.weights.tolist(), strict=True):
            sketch.update(key, weight * part // whole)
        # The most frequent first: a full sketch discards the smallest counts.
        order = np.lexsort((self.sampled, -self.counts))
        for key, count in zip(
            self.sampled[order].tolist(), self.counts[order].tolist(), strict=True
        ):
            sketch.update(key, count * _WEIGHT)
        counted = sketch.get_frequent_items(frequent_items_error_type.NO_FALSE_NEGATIVES)
        # Lower bounds: the upper ones make every key of the tail appear as frequent as the error.
        rows = sorted((-lower, key) for key, _, lower, _ in counted if lower > 0)[:KEPT]
        return replace(
            self,
            hashes=np.array([key for _, key in rows], np.uint64),
            weights=np.array([-weight for weight, _ in rows], np.int64),
            total=self.total * part // whole + int(self.counts.sum()) * _WEIGHT,
            sampled=np.empty(0, np.uint64),
            counts=np.empty(0, np.int64),
            position=0,
            stride=max(1, min(2 * self.stride, longest // SAMPLE)),
            period=self.period + 1,
        )


def combined_frequencies(
    before: KeyFrequencies, after: Sequence[KeyFrequencies], longest: int
) -> KeyFrequencies:
    """Return the frequencies that all sources together observed after `before`.

    The frequent keys are those of the sources that closed a period, averaged; the samples of the
    present period are added up, and a period that is complete by that is closed.
    """
    closed = [item for item in after if item.period != before.period]
    start = before
    if closed:
        hashes, weights = _sums([i.hashes for i in closed], [i.weights for i in closed])
        order = np.lexsort((hashes, -weights))[:KEPT]
        start = replace(
            KeyFrequencies.empty(),
            hashes=hashes[order],
            weights=weights[order] // len(closed),
            total=sum(item.total for item in closed) // len(closed),
            stride=max(item.stride for item in closed),
            period=max(item.period for item in closed),
        )
    for item in after:
        # A source that closed a period starts from an empty sample, one that did not from `before`.
        base = before if item.period == before.period else KeyFrequencies.empty()
        keys, counts = _sums([item.sampled, base.sampled], [item.counts, -base.counts])
        used = counts > 0
        start = start.with_sample(keys[used], counts[used], item.position - base.position)
    return start if start.left > 0 else start.closed(longest)


def packed_frequencies(state: KeyFrequencies) -> dict[str, Any]:
    """Return frequencies as JSON values: the most frequent keys only."""
    order = np.arange(len(state.sampled))
    if len(order) > _PACKED_SAMPLE:
        order = np.sort(np.lexsort((state.sampled, -state.counts))[:_PACKED_SAMPLE])
    return {
        "keys": _packed_words(state.hashes[:PACKED]),
        "weights": state.weights[:PACKED].tolist(),
        "total": state.total,
        "sample": _packed_words(state.sampled[order]),
        "counts": state.counts[order].tolist(),
        "place": [state.position, state.stride, state.period],
    }


def unpacked_frequencies(row: Mapping[str, Any]) -> KeyFrequencies:
    """Return the frequencies of their packed form. Raises `BadProblem`."""
    hashes, sampled = _unpacked_words(row, "keys"), _unpacked_words(row, "sample")
    position, stride, period = integers(row, "place", 3).tolist()
    if stride < 1 or not 0 <= position < SAMPLE * stride:
        raise BadProblem("state.place", "is not a place in a period")
    return KeyFrequencies(
        hashes,
        integers(row, "weights", len(hashes)),
        int(integers({"total": [row.get("total")]}, "total", 1)[0]),
        sampled,
        integers(row, "counts", len(sampled)),
        position,
        stride,
        period,
    )


def _sums(keys: Sequence[Hashes], counts: Sequence[Ints]) -> tuple[Hashes, Ints]:
    """Return the distinct keys, ascending, and the sum of the counts of each."""
    distinct, place = np.unique(np.concatenate(keys), return_inverse=True)
    sums = np.zeros(len(distinct), np.int64)
    np.add.at(sums, place, np.concatenate(counts))
    return distinct, sums


@compiled
def _with_messages(
    keys: Hashes, seed: np.uint64, position: int, stride: int, sampled: Hashes, counts: Ints
) -> tuple[Hashes, Ints]:
    """Return the sample with these messages: a random one of each block of `stride` is in it."""
    first, last = position // stride, (position + len(keys)) // stride
    words, more = np.empty(last + 1 - first, np.uint64), 0
    for block in range(first, last + 1):
        word = mixed(seed + np.uint64(block)) % np.uint64(stride)
        place = block * stride + np.int64(word) - position
        if 0 <= place < len(keys):
            words[more] = keys[place]
            more += 1
    return _merged(sampled, counts, np.sort(words[:more]))


@compiled
def _merged(sampled: Hashes, counts: Ints, words: Hashes) -> tuple[Hashes, Ints]:
    """Return the distinct keys, ascending, of a sample and of further sorted words."""
    keys = np.empty(len(sampled) + len(words), np.uint64)
    sums = np.zeros(len(keys), np.int64)
    old, size = 0, 0
    for word in words:
        while old < len(sampled) and sampled[old] <= word:
            size = _add(keys, sums, size, sampled[old], counts[old])
            old += 1
        size = _add(keys, sums, size, word, 1)
    rest = len(sampled) - old
    keys[size : size + rest], sums[size : size + rest] = sampled[old:], counts[old:]
    return keys[: size + rest].copy(), sums[: size + rest].copy()


@compiled
def _add(keys: Hashes, sums: Ints, size: int, key: np.uint64, count: int) -> int:
    """Add to the count of the last key, or of the next; return the number of keys."""
    if size == 0 or keys[size - 1] != key:
        keys[size] = key
        size += 1
    sums[size - 1] += count
    return size


def _packed_words(words: Hashes) -> str:
    return base64.b64encode(words.astype("<u8").tobytes()).decode("ascii")


def _unpacked_words(row: Mapping[str, Any], name: str) -> Hashes:
    try:
        words = np.frombuffer(base64.b64decode(row[name], validate=True), "<u8")
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise BadProblem(f"state.{name}", "must be words of 64 bits in Base64") from error
    return words.astype(np.uint64)
