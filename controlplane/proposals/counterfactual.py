"""Counterfactuals: what the placement before a plan would have given with the rates since then.

The model is that of planning (`planning.load_model`): the snapshot of the plan, with the recorded
arrivals of its streams. It is evaluated twice, without the plan and with its applied actions. The
second result is compared with the measurements, so the error of the model is known.

Queries of the snapshot count until their end, queries that started later from their placement on,
on the node where they run. Queries that started and ended after the snapshot are unknown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Self

import numpy as np

from algorithms.balance import imbalance
from algorithms.rows import pick_rows
from algorithms.vocabulary import Flags, Floats, Ints
from controlplane.models import Cluster, Execution, Query, QueryStream, Task
from controlplane.planning.load_model import LoadModel
from controlplane.planning.measures import FULLEST, IMBALANCE, REPLICATION_FACTOR, TRAFFIC
from controlplane.plans.plan import PlannedAction
from controlplane.telemetry.arrivals import RateHistory, rates_between
from controlplane.telemetry.grid import Grid, merged
from controlplane.telemetry.series import read
from controlplane.wire.figures import RollUp

# The measures that the model predicts.
MEASURES: Final = (IMBALANCE.name, FULLEST.name, REPLICATION_FACTOR.name, TRAFFIC.name)
# The series of the measured values.
SERIES: Final = ("loads", "arrived", "in", "read", "delivered")
# A query that has not ended, as ms since the epoch.
_NEVER: Final = np.iinfo(np.int64).max
# The share of the errors of the model within its interval.
_INTERVAL: Final = 0.8
# Loads that differ by less than this part are equal.
_SAME: Final = 0.005
# Periods of a result; of more, the means of several in a row are taken.
_MOST: Final = 180


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
        later = self._later(since)
        return half_width(self.measured[name][later] - self.modelled[name][later])

    def mean_without(self, name: str, since: datetime) -> float | None:
        """Return the mean without the plan after `since`."""
        known = _known(self.without[name][self._later(since)])
        return float(known.mean()) if len(known) else None

    def _later(self, since: datetime) -> Flags:
        return np.array([start >= since for start in self.starts], np.bool_)


@dataclass(frozen=True, eq=False)
class NodeLoad:
    """The load of a node in records/s, float64[t] each; as in `Counterfactual`."""

    starts: Sequence[datetime]
    without: Floats
    modelled: Floats
    measured: Floats

    @property
    def interval(self) -> float | None:
        """Return the half width within which 80 % of the model's errors are, None if unknown."""
        return half_width(self.measured - self.modelled)


@dataclass(frozen=True, eq=False)
class _Replay:
    """The arrivals recorded in a time range, for the models of a plan.

    `times` int64[t]: the starts of the periods in ms; `ends`: of queries (ms); `later`: the queries
    that started later.
    """

    before: LoadModel
    history: RateHistory
    times: Ints
    ends: Mapping[int, int]
    later: tuple[Ints, list[list[int]], Ints]

    @classmethod
    def of(cls, execution: Execution, start: datetime, stop: datetime) -> Self | None:
        """Return the replay of the snapshot of a plan, None without recorded arrivals."""
        cluster, before = execution.cluster, LoadModel.of(execution.proposal.snapshot)
        history = _thinned(rates_between(cluster, start, stop, before.streams.tolist()))
        if not len(history.starts):
            return None
        return cls(
            before,
            history,
            np.array([round(t.timestamp() * 1000) for t in history.starts], np.int64),
            _ends(cluster, np.unique(before.queries).tolist()),
            _later_queries(cluster, before),
        )

    def loads(self, model: LoadModel) -> tuple[Floats, Floats]:
        """Return the records/s of each node, float64[k, t], and the replication factors.

        NaN without arrivals.
        """
        every, begins, ends = self._units(model)
        rates = _rates(model, self.history)
        loads = np.zeros((len(model.capacities), len(self.times)))
        factors = np.full(len(self.times), np.nan)
        # Between two changes of the set of queries, all times share one matrix.
        changes = np.unique(np.concatenate([begins, ends]))
        groups = np.searchsorted(changes, self.times, side="right")
        for group in np.unique(groups):
            columns = np.flatnonzero(groups == group)
            time = self.times[columns[0]]
            part = _some(every, np.flatnonzero((begins <= time) & (time < ends)), rates[:, columns])
            loads[:, columns] = part.loads
            with np.errstate(invalid="ignore", divide="ignore"):
                factors[columns] = part.loads.sum(axis=0) / part.live
        missing = np.isnan(self.history.rates).all(axis=0)
        loads[:, missing] = factors[missing] = np.nan
        return loads, factors

    def _units(self, model: LoadModel) -> tuple[LoadModel, Ints, Ints]:
        """Return the model with the queries that started later, and when each unit runs (ms)."""
        nodes, streams, placed = self.later
        lengths = np.array([len(row) for row in streams], np.int64)
        read = np.array([stream for row in streams for stream in row], np.int64)
        every = replace(
            model,
            nodes=np.concatenate([model.nodes, nodes]),
            indptr=np.concatenate([model.indptr, model.indptr[-1] + np.cumsum(lengths)]),
            entries=np.concatenate([model.entries, read]),
            queries=np.concatenate([model.queries, np.zeros(len(nodes), np.int64)]),
            shares=np.concatenate([model.shares, np.ones(len(nodes))]),
        )
        ends = [self.ends.get(query, _NEVER) for query in model.queries.tolist()]
        ends += [_NEVER] * len(nodes)
        begins = np.concatenate([np.zeros(len(model.queries), np.int64), placed])
        return every, begins, np.array(ends, np.int64)

    def measures(self, model: LoadModel) -> dict[str, Floats]:
        """Return the measures of a model, float64[t] each."""
        loads, factors = self.loads(model)
        shares = loads / model.capacities[:, None]
        return {
            IMBALANCE.name: np.array([imbalance(of_nodes) for of_nodes in shares.T]),
            FULLEST.name: shares.max(axis=0),
            REPLICATION_FACTOR.name: factors,
            TRAFFIC.name: loads.sum(axis=0),
        }


def counterfactual(
    execution: Execution, applied: Sequence[PlannedAction], start: datetime, stop: datetime
) -> Counterfactual | None:
    """Return the measures in a time range, None without recorded arrivals.

    `applied`: the actions of the plan that are in effect.
    """
    replay = _Replay.of(execution, start, stop)
    if replay is None:
        return None
    before, history = replay.before, replay.history
    series = read(execution.cluster, SERIES, start, stop, nodes=len(before.capacities))
    return Counterfactual(
        history.starts,
        history.seconds,
        replay.measures(before),
        replay.measures(before.after(applied)),
        _measured(series, before.capacities, history),
    )


def node_counterfactual(
    execution: Execution, applied: Sequence[PlannedAction], node: int, start: datetime,
    stop: datetime,
) -> NodeLoad | None:  # fmt: skip
    """Return the load of a node (its index), None if the actions in effect do not change it."""
    replay = _Replay.of(execution, start, stop)
    if replay is None or node not in replay.before.indices:
        return None
    place = int(np.flatnonzero(replay.before.indices == node)[0])
    without, modelled = (
        replay.loads(model)[0][place] for model in (replay.before, replay.before.after(applied))
    )
    if np.allclose(without, modelled, rtol=_SAME, equal_nan=True):
        return None
    series = read(execution.cluster, SERIES, start, stop, nodes=node + 1)
    measured = np.full(len(replay.times), np.nan)
    places, periods = _by_period(series, replay.history)
    measured[places] = np.nan_to_num(periods.loads[:, node])
    return NodeLoad(replay.history.starts, without, modelled, measured)


def _some(model: LoadModel, units: Ints, rates: Floats) -> LoadModel:
    """Return a model with some of its units, and with rates over time, float64[s, t]."""
    indptr, places = pick_rows(model.indptr, units)
    return replace(
        model, rates=rates, indptr=indptr, entries=model.entries[places],
        queries=model.queries[units], shares=model.shares[units], nodes=model.nodes[units],
    )  # fmt: skip


def _known(values: Floats) -> Floats:
    known: Floats = values[~np.isnan(values)]
    return known


def half_width(errors: Floats) -> float | None:
    """Return the half width within which 80 % of the known errors are, None without one."""
    known = np.abs(_known(errors))
    return float(np.quantile(known, _INTERVAL)) if len(known) else None


def _thinned(history: RateHistory) -> RateHistory:
    """Return the means of as many periods in a row as give at most `_MOST` periods."""
    step = -(-len(history.starts) // _MOST)
    if step <= 1:
        return history
    first = np.arange(0, len(history.starts), step)
    rates = merged(RollUp.MEAN, history.rates.T, np.ones(len(history.starts)), first).T
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
    known = set(model.queries.tolist())
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


def _measured(series: Grid, capacities: Floats, history: RateHistory) -> dict[str, Floats]:
    """Return the measures in each period."""
    result = {name: np.full(len(history.starts), np.nan) for name in MEASURES}
    places, periods = _by_period(series, history)
    for name, values in measured(periods, capacities).items():
        result[name][places] = values
    return result


def _by_period(series: Grid, history: RateHistory) -> tuple[Ints, Grid]:
    """Return the numbers of periods with samples, and their series."""
    first = history.starts[0].timestamp()
    places = np.floor((series.times - first) / history.seconds).astype(np.int64)
    inside = (places >= 0) & (places < len(history.starts))
    return np.unique(places[inside]), series.where(inside).merged(places[inside])


def measured(series: Grid, capacities: Floats) -> dict[str, Floats]:
    """Return the measures of each period of `SERIES`, of mean loads; `capacities` by node."""
    loads = np.nan_to_num(series.loads[:, : len(capacities)])
    shares = loads / capacities
    with np.errstate(invalid="ignore", divide="ignore"):
        factors = series["delivered"] / series["read"]
    return {
        IMBALANCE.name: np.array([imbalance(of_nodes) for of_nodes in shares]),
        FULLEST.name: shares.max(axis=1, initial=0.0),
        REPLICATION_FACTOR.name: np.where(series["read"] > 0, factors, np.nan),
        TRAFFIC.name: loads.sum(axis=1),
    }
