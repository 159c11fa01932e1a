"""Loads of the tasks of split queries: their capacities, and what key groupings give them."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from algorithms.partitioning.replay import ReplayProblem, SampledKeys, replay
from algorithms.vocabulary import Floats
from controlplane.planning.measured.sampled_keys import PartitioningInput, SampledQuery

# Messages of the replays that give the measures of a plan, and their seed.
MESSAGES: Final = 30_000
SEED: Final = 0
# More than the replays of a plan for a thousand queries, before and after it.
_KEPT: Final = 2_500


@dataclass(frozen=True)
class Prediction:
    """What a key grouping gives a query; see `algorithms.partitioning.replay.Replay`.

    `memory`, `keys`: pairs and keys in the messages of the replay; `loads` float64[n]: shares of
    the records by task.
    """

    imbalance: float
    memory: int
    keys: int
    partials_per_s: float
    loads: Floats


def owners_of(ranges: Iterable[Sequence[int]]) -> list[int]:
    """Return the node index of each task; `ranges`: (node, first, stop) in order."""
    return [node for node, first, stop in ranges for _ in range(first, stop)]


def task_capacities(owners: Sequence[int], nodes: Mapping[int, float]) -> Floats:
    """Return the records/s of each task of a query, float64[n].

    `owners`: the node index of each task; `nodes`: capacities by index. The tasks of a query on a
    node have equal parts of its capacity.
    """
    hosted = Counter(owners)
    return np.array([nodes[node] / hosted[node] for node in owners], np.float64)


def stream_of(
    query: SampledQuery, given: PartitioningInput, capacities: Floats, aggregators: int = 1
) -> ReplayProblem:
    """Return the stream of a query; `capacities` float64[n]: records/s of each task."""
    return ReplayProblem(
        SampledKeys(
            np.array(query.hashes, np.uint64), np.array(query.shares, np.float64), query.others
        ),
        capacities,
        query.records_per_s,
        given.interval_s,
        given.merge_s,
        aggregators,
    )


def predict(text: str, stream: ReplayProblem) -> Prediction:
    """Return what a grouping gives a stream; equal calls are computed once."""
    return _predicted(text, _Cached(stream))


class _Cached:
    """A stream as a key of the cache: equal if its content is."""

    def __init__(self, stream: ReplayProblem) -> None:
        self.stream = stream
        scalars = (
            stream.keys.others, stream.records_per_s, stream.interval_s, stream.merge_s,
            stream.aggregators,
        )  # fmt: skip
        arrays = (stream.keys.hashes, stream.keys.shares, stream.capacities)
        content = b"".join((repr(scalars).encode(), *(array.tobytes() for array in arrays)))
        self.digest = hashlib.blake2b(content, digest_size=16).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Cached) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@lru_cache(maxsize=_KEPT)
def _predicted(text: str, cached: _Cached) -> Prediction:
    result = replay(text, cached.stream, MESSAGES, SEED)
    return Prediction(
        result.imbalance, result.memory, result.keys, result.partials_per_s, result.loads
    )
