"""The report on the keys of a query: shares, loads, what other groupings would give, history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from controlplane.models import Node, Query, Task
from controlplane.partitioning.skew_history import SkewPoint

# Samples of this time are in a report by default, in seconds.
SPAN_S: Final = 600
# The most frequent keys that a report lists.
LISTED_KEYS: Final = 20


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
class GroupingReplay:
    """What a key grouping would give: a replay of messages drawn from the sampled keys.

    `parameters`: those that differ from the defaults; `text`: the grouping in a route. `loads`: the
    share of all records by task. `imbalance`: as in `KeyReport`. `memory`: pairs of a key and a
    task; `pairs_per_key`: their number over the number of keys. `partials_per_s`: partial results
    per second that an aggregator node merges. `in_use`: the present grouping; `recommended`: the
    recommendation, which may be the present grouping.
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
class KeyReport:
    """The keys of a query in the last `span_s` seconds.

    `query`: its name. `at`: the time of the newest sample, None if there is none. `sampled`: the
    number of sampled records; `records_per_s`: of all tasks. `keys`: the most frequent keys, the
    first one most frequent. `distinct`: an estimate of the number of keys; `exponent`: of a Zipf
    distribution, None if there are too few keys. `tasks`: measured loads. `imbalance`: measured, a
    share of capacity: records/s over capacity of the most loaded task, minus the mean of all tasks
    (0.16 is "16 points"). `memory`, `pairs_per_key`: measured on the most frequent keys
    and extrapolated. `groupings`: replays on the sampled keys; `recommended`: the name of the
    recommended one, "" if there are no replays. `replay_error`: the largest difference between the
    predicted and the measured share of capacity of a task under the present grouping, None if it is
    unknown.
    """

    query: str
    at: datetime | None
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


def read_key_report(query: Query, span_s: int = SPAN_S) -> KeyReport:
    """Return the report on the keys of a query in the last `span_s` seconds."""
    return KeyReport(query.name, None, span_s, tasks=task_loads(query))


def task_loads(query: Query, rates: Mapping[int, float] | None = None) -> list[TaskLoad]:
    """Return the tasks of a query with their nodes, in order; `rates`: records/s by task."""
    ranges = Task.ranges(Task.objects.filter(query=query)).get(query.pk, ())
    owners = [(task, node) for node, first, stop in ranges for task in range(first, stop)]
    nodes = {node.index: node for node in Node.objects.filter(cluster=query.cluster_id)}
    hosted = [node for _, node in owners]
    return [
        TaskLoad(
            task,
            node,
            nodes[node].name,
            nodes[node].capacity / hosted.count(node),
            (rates or {}).get(task, 0.0),
        )
        for task, node in owners
    ]
