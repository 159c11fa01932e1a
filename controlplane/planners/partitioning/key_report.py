"""The report on the keys of a query: shares, loads, what other groupings would give, history."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
from django.utils import timezone

from algorithms.balance import imbalance
from algorithms.partitioning.catalog import GROUPINGS, parsed_text
from algorithms.partitioning.key_statistics import zipf_exponent
from algorithms.partitioning.recommendation import (
    GroupingCandidate,
    Recommend,
    Recommendation,
    RecommendationProblem,
)
from algorithms.vocabulary import Floats
from controlplane.catalog.computations import text_of
from controlplane.connections import redis_client
from controlplane.models import Query, Task
from controlplane.planners.partitioning.measured_keys import MeasuredKeys, measured_keys
from controlplane.planners.partitioning.observation import merge_cost, sampled_query
from controlplane.planners.partitioning.problem import planned_limit
from controlplane.planners.partitioning.skew_history import SkewPoint, history
from controlplane.planning.measured.key_loads import owners_of, stream_of, task_capacities
from controlplane.planning.measured.sampled_keys import PartitioningInput
from controlplane.policies.store import policy_of
from controlplane.queries.key_groupings import route_text
from controlplane.wire.key_samples import read, read_newest
from controlplane.wire.query import is_join

__all__ = [
    "GroupingReplay",
    "KeyReport",
    "KeyShare",
    "SkewPoint",
    "TaskLoad",
    "read_key_report",
    "task_loads",
]

# How long replays are kept, and of how many queries.
KEPT: Final = timedelta(minutes=1)
_QUERIES: Final = 64
# Messages of a replay: those of a window, within these bounds.
_LEAST_MESSAGES: Final = 30_000
_MOST_MESSAGES: Final = 100_000
# Samples of this time are in a report by default, in seconds.
SPAN_S: Final = 600
# Newer samples give loads, and the tasks of keys: a change of the key grouping is seen soon.
RECENT_S: Final = 60
# Samples of the whole time, evenly spread: 120,000 records give shares to a tenth of a point.
MOST_SAMPLES: Final = 120
# The time of the history, in seconds.
HISTORY_S: Final = 6 * 3600
# The most frequent keys that a report lists.
LISTED_KEYS: Final = 20


@dataclass(frozen=True)
class GroupingReplay:
    """What a key grouping would give: a replay of messages drawn from the sampled keys.

    `parameters`: those that differ from the defaults; `text`: the grouping in a route. `loads`: the
    share of all records by task. `imbalance`: as in `KeyReport`. `memory`: pairs of a key and a
    task of all keys; `pairs_per_key`: their number over the number of keys. `partials_per_s`:
    partial results per second that aggregator nodes merge. `in_use`: the present grouping;
    `recommended`: the recommendation, which may be the present grouping.
    """

    name: str
    title: str
    parameters: Mapping[str, Any]
    text: str
    loads: Sequence[float]
    imbalance: float
    memory: int
    pairs_per_key: float
    partials_per_s: float
    in_use: bool
    recommended: bool


@dataclass(frozen=True)
class QueryReplays:
    """Replays of all candidates, the present grouping included; `reason`: of the recommendation.

    Nothing is recommended for a query whose key grouping cannot change.
    """

    groupings: Sequence[GroupingReplay]
    reason: str

    @property
    def present(self) -> GroupingReplay | None:
        """Return the present grouping, None without replays."""
        return next((replay for replay in self.groupings if replay.in_use), None)

    @property
    def recommended(self) -> str:
        """Return the name of the recommended grouping, "" without one."""
        return next((replay.name for replay in self.groupings if replay.recommended), "")


NO_REPLAYS: Final = QueryReplays((), "")
# By query and time of its submission, as a new database reuses ids.
_REPLAYS: Final[OrderedDict[Any, tuple[datetime, QueryReplays]]] = OrderedDict()


def read_replays(
    query: Query, keys: MeasuredKeys, records_per_s: float, capacities: Floats, now: datetime
) -> QueryReplays:
    """Return the replays of a query, at most a minute old.

    `records_per_s`: of the query now; `capacities` float64[n]: records/s of each task, none of a
    query without a node. A change of the key grouping, of tasks or of capacities replays at once.
    """
    if not len(capacities):
        return NO_REPLAYS
    present = route_text(query.key_grouping, query.key_grouping_parameters)
    key = query.pk, query.submitted_at, present, capacities.tobytes()
    kept = _REPLAYS.get(key)
    if kept is not None and timedelta(0) <= now - kept[0] < KEPT:
        return kept[1]
    keys = replace(keys, records_per_s=records_per_s)
    result = _replayed(query, keys, capacities, present, now)
    _REPLAYS[key] = now, result
    _REPLAYS.move_to_end(key)
    while len(_REPLAYS) > _QUERIES:
        _REPLAYS.popitem(last=False)
    return result


def _replayed(
    query: Query, keys: MeasuredKeys, capacities: Floats, present: str, now: datetime
) -> QueryReplays:
    cluster = query.cluster
    given = PartitioningInput([], cluster.trigger_ms / 1000, merge_cost(cluster, now))
    aggregators = max(1, len(query.aggregators))
    stream = stream_of(sampled_query(query, keys), given, capacities, aggregators)
    records = round(query.window_s * keys.records_per_s)
    recommend = Recommend(
        limit=planned_limit(policy_of(cluster).watch_skew),
        messages=max(_LEAST_MESSAGES, min(_MOST_MESSAGES, records)),
    )
    result = recommend.solve(RecommendationProblem(stream, present))
    changes = query.aggregator is not None and not is_join(text_of(query))
    return QueryReplays(
        [_of(row, result, keys.distinct, present, changes=changes) for row in result.candidates],
        result.reason if changes else "",
    )


def _of(
    candidate: GroupingCandidate,
    result: Recommendation,
    distinct: int,
    present: str,
    *,
    changes: bool,
) -> GroupingReplay:
    name, parameters = parsed_text(candidate.text)
    replay = candidate.replay
    return GroupingReplay(
        name=name,
        title=GROUPINGS[name].title,
        parameters=parameters,
        text=candidate.text,
        loads=replay.loads.tolist(),
        imbalance=replay.imbalance,
        memory=round(replay.pairs_per_key * distinct),
        pairs_per_key=replay.pairs_per_key,
        partials_per_s=replay.partials_per_s,
        in_use=candidate.text == present,
        recommended=changes and candidate is result.recommended,
    )


@dataclass(frozen=True)
class KeyShare:
    """One of the most frequent keys.

    `share`: of all records; `tasks`: shares of the records of this key by task.
    """

    label: str
    share: float
    records_per_s: float
    tasks: Mapping[int, float]


@dataclass(frozen=True)
class TaskLoad:
    """A task and its measured load.

    `node`: the index of its node; `capacity`: records/s, the capacity of the node divided by the
    tasks of the query on it.
    """

    task: int
    node: int
    node_name: str
    capacity: float
    records_per_s: float


@dataclass(frozen=True)
class KeyReport:
    """The keys of a query in the last `span_s` seconds.

    `query`: its name. `sampled_at`: the time of the newest sample, None if there is none.
    `sampled`: the number of sampled records; `records_per_s`: of all tasks. `keys`: the most
    frequent keys, the first one most frequent. `distinct`: an estimate of the number of keys;
    `exponent`: of a Zipf distribution, None if there are too few keys. `tasks`: loads of the last
    minute. `imbalance`: of these, a share of capacity: records/s over capacity of the most loaded
    task, minus the mean of all tasks (0.16 is "16 points"). `memory`: pairs of a key and a task, of
    the most frequent keys as measured and of the others as replayed; `pairs_per_key`: their number
    over `distinct`. `groupings`: replays on the sampled keys; `recommended`: the name of the
    recommended one, "" if there are no replays or the key grouping cannot change. `replay_error`:
    the largest difference between the predicted and the measured share of capacity of a task under
    the present grouping, None if it is unknown.
    """

    query: str
    sampled_at: datetime | None
    span_s: int
    sampled: int = 0
    records_per_s: float = 0.0
    keys: Sequence[KeyShare] = ()
    distinct: int = 0
    exponent: float | None = None
    tasks: Sequence[TaskLoad] = ()
    imbalance: float = 0.0
    memory: int = 0
    pairs_per_key: float = 0.0
    groupings: Sequence[GroupingReplay] = ()
    recommended: str = ""
    history: Sequence[SkewPoint] = field(default_factory=tuple)
    replay_error: float | None = None


def read_key_report(
    query: Query, span_s: int = SPAN_S, history_s: int = HISTORY_S, now: datetime | None = None
) -> KeyReport:
    """Return the report on the keys of a query in the last `span_s` seconds.

    Raises `RedisError`. Replays are at most a minute old; everything else is of this moment.
    """
    moment = now or timezone.now()
    points = history(query, moment - timedelta(seconds=history_s), moment)
    since_ms = round((moment - timedelta(seconds=span_s)).timestamp() * 1000)
    client, slug = redis_client(), query.cluster.slug
    keys = measured_keys(read(client, slug, query.pk, since_ms, MOST_SAMPLES))
    if keys is None:
        return KeyReport(query.name, None, span_s, tasks=task_loads(query), history=points)
    recent = _recent(query, keys)
    tasks = task_loads(query, recent.task_rates)
    capacities = np.array([task.capacity for task in tasks])
    replays = read_replays(query, keys, recent.records_per_s, capacities, moment)
    memory = _memory(keys, recent, replays)
    return KeyReport(
        query=query.name,
        sampled_at=datetime.fromtimestamp(keys.sampled_ms / 1000, UTC),
        span_s=span_s,
        sampled=keys.sampled,
        records_per_s=recent.records_per_s,
        keys=_key_shares(keys, recent),
        distinct=keys.distinct,
        exponent=zipf_exponent(keys.counts),
        tasks=tasks,
        imbalance=imbalance(np.array([task.records_per_s for task in tasks]) / capacities),
        memory=memory,
        pairs_per_key=memory / keys.distinct,
        groupings=replays.groupings,
        recommended=replays.recommended,
        history=points,
        replay_error=_replay_error(tasks, replays),
    )


def _recent(query: Query, keys: MeasuredKeys) -> MeasuredKeys:
    """Return the keys in the samples of the minute before the newest one."""
    count, since_ms = RECENT_S * query.cluster.splits, keys.sampled_ms - 1000 * RECENT_S
    newest = read_newest(redis_client(), query.cluster.slug, [query.pk], count)
    samples = [sample for sample in newest.get(query.pk, ()) if sample.clock_ms > since_ms]
    return measured_keys(samples) or keys


def task_loads(query: Query, rates: Floats | None = None) -> list[TaskLoad]:
    """Return the tasks of a query with their nodes, in order.

    `rates` float64[n]: records/s by task; ignored if the number of tasks has changed since.
    """
    ranges = Task.ranges(Task.objects.filter(query=query)).get(query.pk, ())
    owners = owners_of(ranges)
    nodes = {node.index: node for node in query.cluster.nodes.all()}
    capacities = task_capacities(owners, {index: node.capacity for index, node in nodes.items()})
    measured = rates if rates is not None and len(rates) == len(owners) else np.zeros(len(owners))
    return [
        TaskLoad(task, node, nodes[node].name, capacity, rate)
        for task, (node, capacity, rate) in enumerate(
            zip(owners, capacities.tolist(), measured.tolist(), strict=True)
        )
    ]


def _key_shares(keys: MeasuredKeys, recent: MeasuredKeys) -> list[KeyShare]:
    """Return the most frequent keys; the tasks of a key are those of the last minute."""
    rows = zip(keys.hashes[:LISTED_KEYS].tolist(), keys.shares.tolist(), strict=False)
    return [
        KeyShare(
            keys.labels.get(key, f"{key:016x}"),
            share,
            share * recent.records_per_s,
            _parts(recent.tasks.get(key) or keys.tasks.get(key, {})),
        )
        for key, share in rows
    ]


def _parts(records: Mapping[int, int]) -> dict[int, float]:
    """Return shares of the records by task, the tasks in order."""
    total = sum(records.values())
    return {task: records[task] / total for task in sorted(records)}


def _memory(keys: MeasuredKeys, recent: MeasuredKeys, replays: QueryReplays) -> int:
    """Return the pairs of the keys with known tasks, and of the others by the replay."""
    others, present = max(0, keys.distinct - len(recent.tasks)), replays.present
    return recent.pairs + round(others * (present.pairs_per_key if present is not None else 1.0))


def _replay_error(tasks: Sequence[TaskLoad], replays: QueryReplays) -> float | None:
    """Return the largest difference of predicted and measured loads over capacity."""
    total, present = sum(task.records_per_s for task in tasks), replays.present
    if not total or present is None or len(present.loads) != len(tasks):
        return None
    rows = zip(tasks, present.loads, strict=True)
    return max(abs(load * total - task.records_per_s) / task.capacity for task, load in rows)
