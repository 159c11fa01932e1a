"""Partitions of one or many topics: which topics match a pattern, and numbers of partitions.

A cut has its partitions by number. The number of a partition of a pattern of topics is that of its
topic, in the order of their discovery, times `STRIDE`, plus its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from controlplane.wire.errors import SourceUnavailable

# No topic that is read has more partitions.
STRIDE: Final = 10_000
# Of one pattern: the offset of every batch has all of them.
MOST_TOPICS: Final = 500
MOST_PARTITIONS: Final = 2_000


class TooManyTopics(SourceUnavailable):
    """More topics or partitions match a pattern than a stream reads."""


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


def numbers_of(topics: Sequence[str], places: Iterable[Place]) -> dict[Place, int]:
    """Return the numbers of partitions; `topics`: in the order of their discovery."""
    first = {topic: STRIDE * index for index, topic in enumerate(topics)}
    return {place: first[place.topic] + place.partition for place in places}


def place_of(topics: Sequence[str], number: int) -> Place:
    """Return the partition with a number; its topic is empty if there are no `topics`."""
    return Place(topics[number // STRIDE] if topics else "", number % STRIDE)


def pattern_fault(pattern: str) -> str:
    """Return why a text is not a regular expression that can match names, empty if it is."""
    try:
        for text in (pattern, _whole(pattern)):
            pc.match_substring_regex(pa.array([""]), text)
    except pa.ArrowInvalid as error:
        return f"is not a regular expression (RE2): {error}"[:300]
    return ""


def matching(
    pattern: str, topics: Mapping[str, int], known: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Return the topics, with their numbers of partitions, whose whole name matches a pattern.

    RE2 takes linear time for any pattern. `known`: topics that a stream has read, as `topics`,
    which may be deleted. Raises `TooManyTopics`.
    """
    names = pa.array(sorted(topics), pa.string())
    own = {*pc.filter(names, pc.match_substring_regex(names, _whole(pattern))).to_pylist()}
    result = {name: count for name, count in topics.items() if name in own}
    every = {**(known or {}), **result}
    count, partitions = len(every), sum(every.values())
    if count > MOST_TOPICS or partitions > MOST_PARTITIONS:
        raise TooManyTopics(
            f"{pattern} matches {count:,} topics, with those that were deleted, of {partitions:,}"
            f" partitions; a stream reads at most {MOST_TOPICS:,} of {MOST_PARTITIONS:,}: use a"
            " pattern that matches fewer, or more streams"
        )
    return result


def _whole(pattern: str) -> str:
    return f"^(?:{pattern})$"
