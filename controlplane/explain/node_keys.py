"""The frequent keys of the records that a node receives, from the samples of split nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from controlplane.explain.node_work import HostedQuery, NodeQueries, queries_over
from controlplane.planners.partitioning.measured_keys import MeasuredKeys
from controlplane.planners.partitioning.observation import recent_keys
from controlplane.planners.partitioning.skew_history import top_rates
from controlplane.telemetry.measures import PRESENT
from controlplane.watch.observation import ClusterObservation

# Split queries whose keys are read: those with the most records on the node, then others.
SPLIT_QUERIES: Final = 8
# Samples of keys are kept for this time.
_KEYS_KEPT: Final = timedelta(minutes=10)
# One sample a second of each split node, over `PRESENT`.
_FORMER: Final = timedelta(minutes=5)
_SAMPLES: Final = int(PRESENT.total_seconds())


@dataclass(frozen=True)
class NodeKey:
    """A frequent key on a node, as the samples of a query have it.

    `rate`: the records/s of the key that the node receives; `before`: at most so many before the
    change, None if not known. `share`: of the records of the query. `stream`: the id of the stream
    with most of its records, None if not known. `stands_out`: True if it is the most frequent key
    of its query.
    """

    label: str
    query: HostedQuery
    rate: float
    share: float
    before: float | None = None
    stream: int | None = None
    stands_out: bool = False


@dataclass(frozen=True)
class NodeKeys:
    """The frequent keys on a node, the largest first; `total`: records/s of all keys there.

    `others`: the estimated number of keys that are not listed; `sampled`: sampled records.
    """

    rows: Sequence[NodeKey]
    total: float
    others: int
    sampled: int


def read_node_keys(
    observed: ClusterObservation, work: NodeQueries, rates: Mapping[int, float],
    before: datetime | None,
) -> NodeKeys | None:  # fmt: skip
    """Return the sampled keys of the records of a node; None without samples of that time.

    Split queries on the node are sampled, and split queries elsewhere that read its streams.
    `rates`: the former rates of streams by id; `before`: a moment before the change. Both limit
    the former rates of keys.
    """
    if observed.now - observed.time > _KEYS_KEPT:
        return None
    chosen = _split_queries(observed, work)
    if not chosen:
        return None
    count = _SAMPLES * observed.cluster.splits
    sampled = dict(recent_keys(observed.cluster, list(chosen), count, observed.time - PRESENT))
    former: Mapping[int, float] = {}
    if before is not None:
        former = top_rates(observed.cluster, list(sampled), before - _FORMER, before)
    rows: list[NodeKey] = []
    total = 0.0
    for query, keys in sampled.items():
        received = _Received(chosen[query], keys, work.whole_streams, rates, former.get(query))
        own = received.keys()
        rows += own
        total += max(_rate_here(chosen[query], keys), sum(row.rate for row in own))
    if not rows:
        return None
    others = sum(keys.distinct for keys in sampled.values()) - len(rows)
    rows.sort(key=lambda row: -row.rate)
    return NodeKeys(rows, total, max(0, others), sum(keys.sampled for keys in sampled.values()))


def _split_queries(observed: ClusterObservation, work: NodeQueries) -> dict[int, HostedQuery]:
    """Return the split queries whose keys are read, by id."""
    split = [query for query in work.queries.values() if query.is_split]
    split.sort(key=lambda query: -(query.evaluations_per_s or 0.0))
    chosen = {query.id: query for query in split[:SPLIT_QUERIES]}
    left = SPLIT_QUERIES - len(chosen)
    if left and work.whole_streams:
        others = queries_over(observed.cluster, work.whole_streams, set(work.queries), left)
        chosen |= {query.id: query for query in others}
    return chosen


@dataclass(frozen=True, eq=False)
class _Received:
    """The keys of a split query among the records that a node receives.

    `whole`: streams that the node receives as a whole, as another query there reads them; `rates`:
    former records/s by stream; `former`: of the most frequent key, None if not known.
    """

    query: HostedQuery
    measured: MeasuredKeys
    whole: frozenset[int]
    rates: Mapping[int, float]
    former: float | None

    def keys(self) -> list[NodeKey]:
        """Return the frequent keys with records on the node."""
        shares = dict(
            zip(self.measured.hashes.tolist(), self.measured.shares.tolist(), strict=True)
        )
        rows = (self._key(key, shares.get(key, 0.0)) for key in self.measured.tasks)
        return [row for row in rows if row.rate > 0]

    def _key(self, key: int, share: float) -> NodeKey:
        part = _part(self.measured.tasks[key], frozenset(self.query.tasks))
        rate = share * self.measured.records_per_s
        sampled = self.measured.streams.get(key, {})
        parts = {stream: _part(sampled, {stream}) for stream in sampled}
        # Of streams that the node receives as a whole, it receives all records of the key.
        received = {stream: 1.0 if stream in self.whole else part for stream in parts}
        factor = sum(parts[stream] * received[stream] for stream in parts) if parts else part
        is_top = share >= self.measured.top_share
        bounds = [self.former * factor] if is_top and self.former is not None else []
        # A key cannot have had more records than its streams.
        if parts and self.rates.keys() >= parts.keys():
            bounds.append(
                sum(
                    min(rate * parts[stream], self.rates[stream]) * received[stream]
                    for stream in parts
                )
            )
        return NodeKey(
            label=self.measured.labels.get(key, f"{key:016x}"), query=self.query,
            rate=rate * factor, share=share, before=min(bounds, default=None),
            stream=max(parts, key=parts.__getitem__, default=None), stands_out=is_top,
        )  # fmt: skip


def _part(records: Mapping[int, int], chosen: frozenset[int] | set[int]) -> float:
    """Return the part of the records whose task or stream is chosen."""
    total = sum(records.values())
    return sum(count for place, count in records.items() if place in chosen) / total


def _rate_here(query: HostedQuery, keys: MeasuredKeys) -> float:
    """Return the records/s of the tasks of a query on the node."""
    known = [task for task in query.tasks if task < len(keys.task_rates)]
    return float(keys.task_rates[known].sum())
