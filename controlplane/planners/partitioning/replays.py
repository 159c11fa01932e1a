"""What each key grouping would give a query: replays on its sampled keys, once a minute."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from algorithms.partitioning.catalog import GROUPINGS, parsed_text
from algorithms.partitioning.recommendation import (
    GroupingCandidate,
    Recommend,
    Recommendation,
    RecommendationProblem,
)
from algorithms.vocabulary import Floats
from controlplane.catalog.computations import text_of
from controlplane.models import Query
from controlplane.planners.partitioning.measured_keys import MeasuredKeys
from controlplane.planners.partitioning.observation import merge_cost, sampled_query
from controlplane.planners.partitioning.problem import planned_limit
from controlplane.planning.measured.key_loads import stream_of
from controlplane.planning.measured.sampled_keys import PartitioningInput
from controlplane.policies.store import policy_of
from controlplane.queries.key_groupings import route_text
from controlplane.wire.query import is_join

# How long replays are kept, and of how many queries.
KEPT: Final = timedelta(minutes=1)
_QUERIES: Final = 64
# Messages of a replay: those of a window, within these bounds.
_LEAST_MESSAGES: Final = 30_000
_MOST_MESSAGES: Final = 100_000


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
