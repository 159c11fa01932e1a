"""Which streams, keys and queries contribute most to the load of a node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.arrivals import PERIOD_S, RateHistory
from controlplane.explain.node_work import HostedQuery, NodeWork
from controlplane.explain.observation import RECENT, ClusterObservation
from controlplane.explain.shifts import largest_shifts
from controlplane.explain.values import Contribution, Contributions
from controlplane.models import KeySkew
from controlplane.planning.partitioning.measured_keys import MeasuredKeys
from controlplane.planning.partitioning.observation import recent_keys

# Rows of each kind; all others are one row.
LISTED: Final = 5
# Split queries whose keys are read: those with the most records on the node.
SPLIT_QUERIES: Final = 8
# Samples of keys are kept for this time.
_KEYS_KEPT: Final = timedelta(minutes=10)
# One sample a second of each split node, over `RECENT`.
_SAMPLES: Final = int(RECENT.total_seconds())


@dataclass(frozen=True)
class StreamRise:
    """The change of the rate of a stream as a node receives it, in records/s.

    `source_before`, `source_after`: of the stream itself; `time`: when it changed, None if it did
    not change by more than chance.
    """

    id: int
    name: str
    before: float
    after: float
    source_before: float
    source_after: float
    time: datetime | None


def stream_rises(
    observed: ClusterObservation, weights: Mapping[int, float], names: Mapping[int, str]
) -> list[StreamRise]:
    """Return the rates of streams before and after their largest shift, the largest rise first."""
    history = observed.rates(sorted(weights))
    if not history.rates.shape[1]:
        return []
    shifts = largest_shifts(history.rates)
    newest = _newest(history)
    rows = []
    for place, stream in enumerate(history.streams.tolist()):
        weight, sure = weights[stream], shifts.is_sure(place)
        before = float(shifts.before[place]) if sure else float(newest[place])
        moment = history.starts[min(int(shifts.places[place]), len(history.starts) - 1)]
        after = float(newest[place])
        rows.append(
            StreamRise(
                stream, names.get(stream, str(stream)), weight * before, weight * after,
                before, after, moment if sure else None,
            )
        )  # fmt: skip
    return sorted(rows, key=lambda row: row.before - row.after)


def _newest(history: RateHistory) -> Floats:
    """Return the mean rate of each stream over the last `RECENT`, 0 if it is not known."""
    last = history.rates[
        :, -max(1, round(RECENT.total_seconds() / max(history.seconds, PERIOD_S))) :
    ]
    known = ~np.isnan(last)
    means: Floats = np.where(known, last, 0.0).sum(axis=1) / np.maximum(1, known.sum(axis=1))
    return means


def stream_contributions(rises: Sequence[StreamRise], excess: float) -> Contributions | None:
    """Return the streams by their part of the increase, or of the load if there is no increase.

    `excess`: records/s above the limit; a stream that is larger is marked.
    """
    if not rises:
        return None
    increase = sum(max(0.0, row.after - row.before) for row in rises)
    load = sum(row.after for row in rises)
    # A tenth: smaller changes are the usual variation.
    is_change = increase > 0.1 * load
    total = increase if is_change else load

    def key(row: StreamRise) -> float:
        return row.after - row.before if is_change else row.after

    ordered = sorted(rises, key=key, reverse=True)
    rows = [
        Contribution(
            row.name, row.after, max(0.0, key(row)) / total if total else 0.0, row.id,
            before=row.before if is_change else None, is_large=0 < excess <= key(row),
        )
        for row in ordered[:LISTED]
    ]  # fmt: skip
    others = sum(max(0.0, key(row)) for row in ordered[LISTED:])
    return Contributions(
        total, rows, len(ordered[LISTED:]), others, others / total if total else 0.0, is_change
    )


def query_contributions(queries: Sequence[HostedQuery]) -> Contributions | None:
    """Return the queries by the records/s that their tasks process; None if nothing is measured."""
    known = sorted(
        (query for query in queries if query.records_per_s is not None),
        key=lambda query: -(query.records_per_s or 0.0),
    )
    total = sum(query.records_per_s or 0.0 for query in known)
    if not total:
        return None
    rows = [
        Contribution(query.name, rate := query.records_per_s or 0.0, rate / total, query.id)
        for query in known[:LISTED]
    ]
    others = sum(query.records_per_s or 0.0 for query in known[LISTED:])
    return Contributions(total, rows, len(known) - len(rows), others, others / total)


@dataclass(frozen=True)
class NodeKey:
    """A frequent key on a node: its records/s there, and before the change, None if not known.

    `stands_out`: True if it is the most frequent key of its query.
    """

    label: str
    query: HostedQuery
    rate: float
    before: float | None = None
    stands_out: bool = False


@dataclass(frozen=True)
class NodeKeys:
    """The frequent keys on a node, the largest first; `total`: records/s of their queries there.

    `others`: the estimated number of keys that are not listed; `sampled`: sampled records.
    """

    rows: Sequence[NodeKey]
    total: float
    others: int
    sampled: int


def read_node_keys(
    observed: ClusterObservation, work: NodeWork, before: datetime | None = None
) -> NodeKeys | None:
    """Return the sampled keys of split queries on a node; None without samples of that time.

    `before`: a moment before the change, for the former rate of the most frequent keys.
    """
    if observed.now - observed.time > _KEYS_KEPT:
        return None
    split = [query for query in work.queries.values() if query.is_split]
    split.sort(key=lambda query: -(query.records_per_s or 0.0))
    chosen = {query.id: query for query in split[:SPLIT_QUERIES]}
    if not chosen:
        return None
    count = _SAMPLES * observed.cluster.splits
    sampled = dict(recent_keys(observed.cluster, list(chosen), count, observed.time - RECENT))
    former = _former_top_rates(list(sampled), before) if before is not None else {}
    rows = [
        row for query, keys in sampled.items()
        for row in _keys_of(chosen[query], keys, former.get(query))
    ]  # fmt: skip
    if not rows:
        return None
    total = sum(_rate_here(chosen[query], keys) for query, keys in sampled.items())
    others = sum(keys.distinct for keys in sampled.values()) - len(rows)
    rows.sort(key=lambda row: -row.rate)
    count = sum(keys.sampled for keys in sampled.values())
    return NodeKeys(rows, total, max(0, others), count)


def _keys_of(query: HostedQuery, keys: MeasuredKeys, former: float | None) -> list[NodeKey]:
    """Return the frequent keys of a query with records in its tasks on the node."""
    here, rows = frozenset(query.tasks), []
    shares = dict(zip(keys.hashes.tolist(), keys.shares.tolist(), strict=True))
    for key, tasks in keys.tasks.items():
        total = sum(tasks.values())
        part = sum(records for task, records in tasks.items() if task in here) / total
        if not part:
            continue
        rate = shares.get(key, 0.0) * keys.records_per_s * part
        label = keys.labels.get(key, f"{key:016x}")
        is_top = shares.get(key, 0.0) >= keys.top_share
        before = former * part if is_top and former is not None else None
        rows.append(NodeKey(label, query, rate, before, is_top))
    return rows


def _rate_here(query: HostedQuery, keys: MeasuredKeys) -> float:
    """Return the records/s of the tasks of a query on the node."""
    known = [task for task in query.tasks if task < len(keys.task_rates)]
    return float(keys.task_rates[known].sum())


def _former_top_rates(queries: Sequence[int], before: datetime) -> dict[int, float]:
    """Return the mean records/s of the most frequent key in five minutes before a moment."""
    rows = KeySkew.objects.filter(
        query__in=queries, seconds=KeySkew.Period.TEN_SECONDS,
        t__gte=before - timedelta(minutes=5), t__lt=before,
    )  # fmt: skip
    rates: dict[int, list[float]] = {}
    for query, share, rate in rows.values_list("query_id", "top_share", "records_per_s"):
        rates.setdefault(query, []).append(share * rate)
    return {query: sum(values) / len(values) for query, values in rates.items()}


def key_contributions(keys: NodeKeys | None, load: float, excess: float) -> Contributions | None:
    """Return the keys by their part of the load of a node (records/s); None without samples."""
    if keys is None or not load:
        return None
    rows = [
        Contribution(
            row.label, row.rate, min(1.0, row.rate / load), query=row.query.name,
            before=row.before, is_large=0 < excess <= row.rate,
        )
        for row in keys.rows[:LISTED]
    ]  # fmt: skip
    shown = sum(row.rate for row in rows)
    others = max(0.0, keys.total - shown)
    left_out = keys.others + len(keys.rows) - len(rows)
    share = min(1.0, others / load)
    return Contributions(load, rows, left_out, others, share, sampled=keys.sampled)
