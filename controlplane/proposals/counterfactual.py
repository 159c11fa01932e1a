"""Counterfactuals: what the placement before a plan would have given with the rates since then.

The model is that of planning (`planning.load_model`): the snapshot of the plan, with the recorded
arrivals of its streams. It is evaluated twice, without the plan and with its applied actions. The
second result is compared with the measurements, so the error of the model is known.

Queries of the snapshot count until their end, queries that started later from their placement on,
on the node where they run. The processed records of split queries are scaled by the total rate.
Queries that started and ended after the snapshot are unknown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from algorithms.vocabulary import Floats, Ints
from controlplane.arrivals.catching_up import input_share
from controlplane.arrivals.periods import RateHistory, rates_between
from controlplane.models import Cluster, Execution, Query, QueryStream, Task
from controlplane.planning.load_model import LoadModel
from controlplane.planning.measures import FULLEST, IMBALANCE, REPLICATION_FACTOR
from controlplane.plans.plan import PlannedAction
from controlplane.telemetry import time_series
from controlplane.telemetry.samples import Sample

Bools = NDArray[np.bool_]
# The measures that the model predicts.
MEASURES: Final = (IMBALANCE.name, FULLEST.name, REPLICATION_FACTOR.name)
# A query that has not ended, as ms since the epoch.
_NEVER: Final = np.iinfo(np.int64).max
# The share of the errors of the model within its interval.
_INTERVAL: Final = 0.8
# Periods of a result; of more, the means of several in a row are taken.
_MOST: Final = 180


@dataclass(frozen=True, eq=False)
class Units:
    """The units of a cluster: queries of one task, then tasks of split queries.

    `nodes` int64[u]: positions of nodes; `indptr`, `entries`: positions of the streams of a unit;
    `own` float64[u]: records/s that it shares with no other; `begins`, `ends` int64[u]: when it
    runs, in ms since the epoch; `whole` bool[u]: queries of one task.
    """

    nodes: Ints
    indptr: Ints
    entries: Ints
    own: Floats
    begins: Ints
    ends: Ints
    whole: Bools

    @classmethod
    def of(cls, model: LoadModel, ends: Mapping[int, int]) -> Self:
        """Return the units of a model; `ends`: the ends of queries, by query."""
        queries = [*model.ids.tolist(), *(query for query, _ in model.tasks)]
        count = len(queries)
        return cls(
            model.nodes,
            model.indptr,
            model.entries,
            model.own,
            np.zeros(count, np.int64),
            np.array([ends.get(query, _NEVER) for query in queries], np.int64),
            np.arange(count) < len(model.ids),
        )

    def with_later(self, nodes: Ints, streams: Sequence[Sequence[int]], begins: Ints) -> Self:
        """Return the units and queries of one task that started later."""
        count = len(nodes)
        lengths = np.array([len(row) for row in streams], np.int64)
        flat = [stream for row in streams for stream in row]
        return replace(
            self,
            nodes=np.concatenate([self.nodes, nodes]),
            indptr=np.concatenate([self.indptr, self.indptr[-1] + np.cumsum(lengths)]),
            entries=np.concatenate([self.entries, np.array(flat, np.int64)]),
            own=np.concatenate([self.own, np.zeros(count)]),
            begins=np.concatenate([self.begins, begins]),
            ends=np.concatenate([self.ends, np.full(count, _NEVER)]),
            whole=np.concatenate([self.whole, np.ones(count, np.bool_)]),
        )

    def measures(
        self, rates: Floats, capacities: Floats, times: Ints, growth: Floats
    ) -> dict[str, Floats]:
        """Return the measures at these times (ms), float64[t] each.

        `rates` float64[s, t] after drop rules; `growth` float64[t]: the factor of `own`.
        """
        loads = np.zeros((len(capacities), len(times)))
        factors = np.full(len(times), np.nan)
        changes = np.unique(np.concatenate([self.begins, self.ends]))
        # Between two changes of the set of queries, all times share one matrix.
        groups = np.searchsorted(changes, times, side="right")
        for group in np.unique(groups):
            columns = np.flatnonzero(groups == group)
            time = times[columns[0]]
            runs = (self.begins <= time) & (time < self.ends)
            received, live = self._received(runs, rates[:, columns], len(capacities))
            own = np.bincount(self.nodes[runs], self.own[runs], len(capacities))
            loads[:, columns] = received + own[:, None] * growth[columns]
            with np.errstate(invalid="ignore", divide="ignore"):
                factors[columns] = received.sum(axis=0) / live
        shares = loads / capacities[:, None]
        return {
            IMBALANCE.name: shares.max(axis=0) - shares.mean(axis=0),
            FULLEST.name: shares.max(axis=0),
            REPLICATION_FACTOR.name: factors,
        }

    def _received(self, runs: Bools, rates: Floats, nodes: int) -> tuple[Floats, Floats]:
        """Return the records/s that each node receives, and those of all live streams."""
        streams = len(rates)
        owner = np.repeat(np.arange(len(self.nodes)), np.diff(self.indptr))
        chosen = runs[owner] & self.whole[owner]
        flat = self.nodes[owner[chosen]] * streams + self.entries[chosen]
        reads = np.bincount(flat, minlength=nodes * streams).reshape(nodes, streams) > 0
        live: Floats = rates[reads.any(axis=0)].sum(axis=0)
        return reads @ rates, live


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """Measures over time by name, float64[t] each, NaN where nothing is known.

    `starts`: of the periods of `seconds`; `without`: without the plan; `modelled`: with its applied
    actions, by the same model; `measured`: by the pipeline.
    """

    starts: Sequence[datetime]
    seconds: int
    without: Mapping[str, Floats]
    modelled: Mapping[str, Floats]
    measured: Mapping[str, Floats]

    def interval(self, name: str, since: datetime) -> float | None:
        """Return the half width within which 80 % of the model's errors are after `since`."""
        errors = self._errors(name, since)
        return float(np.quantile(errors, _INTERVAL)) if len(errors) else None

    def mean_without(self, name: str, since: datetime) -> float | None:
        """Return the mean without the plan after `since`."""
        values = self.without[name][self._later(since)]
        known = values[~np.isnan(values)]
        return float(known.mean()) if len(known) else None

    def _errors(self, name: str, since: datetime) -> Floats:
        later = self._later(since)
        errors: Floats = np.abs(self.measured[name][later] - self.modelled[name][later])
        return errors[~np.isnan(errors)]

    def _later(self, since: datetime) -> Bools:
        return np.array([start >= since for start in self.starts], np.bool_)


def counterfactual(
    execution: Execution, applied: Sequence[PlannedAction], start: datetime, stop: datetime
) -> Counterfactual | None:
    """Return the measures in a time range, None without recorded arrivals.

    `applied`: the actions of the plan that are in effect.
    """
    proposal, cluster = execution.proposal, execution.cluster
    before = LoadModel.of(proposal.snapshot)
    history = _thinned(rates_between(cluster, start, stop, before.streams.tolist()))
    if not len(history.starts):
        return None
    times = np.array([round(t.timestamp() * 1000) for t in history.starts], np.int64)
    ends = _ends(cluster, [*before.ids.tolist(), *{query for query, _ in before.tasks}])
    growth = _growth(before, history)
    later = _later_queries(cluster, before)
    results = []
    for model in (before, before.after(applied)):
        units = Units.of(model, ends).with_later(*later)
        results.append(units.measures(_rates(model, history), model.capacities, times, growth))
    missing = np.isnan(history.rates).all(axis=0)
    for result in results:
        for values in result.values():
            values[missing] = np.nan
    samples = time_series.samples(cluster, start, stop)
    measured = _measured(samples, before.capacities, history, is_split=bool(before.tasks))
    return Counterfactual(history.starts, history.seconds, results[0], results[1], measured)


def _thinned(history: RateHistory) -> RateHistory:
    """Return the means of as many periods in a row as give at most `_MOST` periods."""
    step = -(-len(history.starts) // _MOST)
    if step <= 1:
        return history
    first = np.arange(0, len(history.starts), step)
    known = ~np.isnan(history.rates)
    sums = np.add.reduceat(np.nan_to_num(history.rates), first, axis=1)
    counts = np.add.reduceat(known.astype(np.float64), first, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = sums / counts
    return replace(
        history, seconds=history.seconds * step, rates=rates, starts=history.starts[::step]
    )


def _rates(model: LoadModel, history: RateHistory) -> Floats:
    """Return the rates after the drop rules of the input edges, in the order of the model."""
    places = np.searchsorted(history.streams, model.streams)
    with np.errstate(invalid="ignore", divide="ignore"):
        kept = np.where(model.offered > 0, model.rates / model.offered, 1.0)
    rates: Floats = np.nan_to_num(history.rates[places]) * kept[:, None]
    return rates


def _growth(model: LoadModel, history: RateHistory) -> Floats:
    """Return the total rate of the streams over that of the snapshot, float64[t]."""
    total = float(model.offered.sum())
    now = np.nan_to_num(history.rates).sum(axis=0)
    growth: Floats = now / total if total else np.ones(len(now))
    return growth


def _ends(cluster: Cluster, queries: Sequence[int]) -> dict[int, int]:
    """Return when the queries ended (ms); deleted ones have ended at an unknown time: 0."""
    present = dict(
        Query.objects.filter(cluster=cluster, pk__gte=min(queries, default=0)).values_list(
            "pk", "ended_at"
        )
    )
    ends = {query: 0 for query in queries if query not in present}
    return ends | {
        query: round(ended.timestamp() * 1000)
        for query in queries
        if (ended := present.get(query)) is not None
    }


def _later_queries(cluster: Cluster, model: LoadModel) -> tuple[Ints, list[list[int]], Ints]:
    """Return node, streams and start of the running queries that the snapshot does not have."""
    known = {*model.ids.tolist(), *(query for query, _ in model.tasks)}
    rows = Task.objects.filter(
        query__cluster=cluster, query__state=Query.State.RUNNING, query__task_count=1
    ).values_list("query_id", "node__index", "query__placed_at")
    nodes, places = {i: place for place, i in enumerate(model.indices.tolist())}, {}
    for query, node, placed_at in rows:
        if query not in known and node in nodes:
            places[query] = nodes[node], placed_at or datetime.fromtimestamp(0, UTC)
    streams: dict[int, list[int]] = {query: [] for query in places}
    positions = {stream: place for place, stream in enumerate(model.streams.tolist())}
    subscriptions = QueryStream.objects.filter(
        query__cluster=cluster, query__state=Query.State.RUNNING
    ).values_list("query_id", "stream_id")
    for query, stream in subscriptions if places else ():
        if query in streams and stream in positions:
            streams[query].append(positions[stream])
    return (
        np.array([node for node, _ in places.values()], np.int64),
        list(streams.values()),
        np.array(
            [round(placed_at.timestamp() * 1000) for _, placed_at in places.values()], np.int64
        ),
    )


def _measured(
    samples: Sequence[Sample], capacities: Floats, history: RateHistory, *, is_split: bool
) -> dict[str, Floats]:
    """Return the measures of the samples in each period."""
    count = len(history.starts)
    first = history.starts[0].timestamp() * 1000
    buckets: dict[int, list[Sample]] = {}
    for sample in samples:
        place = int((sample["t"] - first) // (1000 * history.seconds))
        if 0 <= place < count:
            buckets.setdefault(place, []).append(sample)
    result = {name: np.full(count, np.nan) for name in MEASURES}
    for place, rows in buckets.items():
        _measure(result, place, rows, capacities, is_split=is_split)
    return result


def _measure(
    result: Mapping[str, Floats],
    place: int,
    rows: Sequence[Sample],
    capacities: Floats,
    *,
    is_split: bool,
) -> None:
    seconds = np.array([row.get("span_s") or 1.0 for row in rows])
    loads = np.zeros((len(rows), len(capacities)))
    for number, row in enumerate(rows):
        values = (row.get("loads") or [])[: len(capacities)]
        loads[number, : len(values)] = values
    share = input_share(rows)
    shares = (seconds @ loads) / seconds.sum() * share / capacities
    result[IMBALANCE.name][place] = shares.max(initial=0.0) - shares.mean()
    result[FULLEST.name][place] = shares.max(initial=0.0)
    read, delivered = (
        float(seconds @ np.array([row.get(name) or 0.0 for row in rows]))
        for name in ("read", "delivered")
    )
    if read and not is_split:
        result[REPLICATION_FACTOR.name][place] = delivered / read
