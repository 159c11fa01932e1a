"""Planning for a described cluster, without database and Redis.

Ids are places in the document, counted from 1. What is not placed yet has no node to leave: for the
planner it is on a node that nobody may use, and its moves from there are dropped.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.utils import timezone

from controlplane.cluster_spec.document import ClusterDescription, QueryPart
from controlplane.errors import Conflict
from controlplane.models import Cluster, Snapshot
from controlplane.planners.placement.policy_limits import PolicyLimits
from controlplane.planning.action_text import ActionText, Names, action_text
from controlplane.planning.adapter import Progress
from controlplane.planning.adapters import adapter_of
from controlplane.planning.computation import Computed, compute_plan
from controlplane.planning.resolution import resolve
from controlplane.plans.plan import Plan, TaskMove, task_moves
from controlplane.plans.snapshot import (
    ClusterSnapshot,
    Excluded,
    NodeRow,
    QueryRow,
    SplitQueryRow,
    StreamRow,
    canonical,
    digest_of,
)
from controlplane.policies.measure_limits import measure_limits
from controlplane.policies.settings import settings_of
from controlplane.policies.store import limits_of
from controlplane.proposals.requests import checked_parameters

# Above any index: nodes stand in the order of their indices.
_NOWHERE: Final = 2**20


@dataclass(frozen=True)
class PlannedCluster:
    """A plan for a described cluster.

    `placed`: by the name of a query that had no node, its node; `texts`: the actions for people.
    """

    planner: str
    algorithm: str
    parameters: Mapping[str, Any]
    bounds: Mapping[str, float]
    placed: Mapping[str, int]
    computed: Computed
    texts: Sequence[ActionText]

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        columns = self.computed.columns()
        kept = ("before", "after", "imbalance_after", "predicted", "rollback_cost", "actions")
        return {
            "planner": self.planner,
            "algorithm": self.algorithm,
            "parameters": dict(self.parameters),
            "bounds": dict(self.bounds),
            "placed": dict(self.placed),
        } | {name: columns[name] for name in kept}


def plan_for(
    description: ClusterDescription,
    planner: str,
    algorithm: str,
    parameters: Mapping[str, Any],
    progress: Progress,
) -> PlannedCluster:
    """Return a plan for a description. Raises `Invalid`, `Conflict`, and the planners' errors."""
    cluster = Cluster(slug=description.cluster.slug, nu=description.cluster.nu)
    adapter = adapter_of(planner)
    chosen = adapter.algorithm(algorithm)
    given = checked_parameters(adapter, chosen, parameters, cluster)
    policy = settings_of(description.policy.given())
    limits = PolicyLimits.of(measure_limits(policy, None), policy.dead_band)
    snapshot = replace(snapshot_of(description), inputs={PolicyLimits.name: limits})
    offered = _with_unplaced_node(description, snapshot) if adapter.places else snapshot
    result = adapter.plan_for(chosen.name, given, offered, progress)
    plan = resolve(offered, result.actions)
    placed = {move.query: move.target for move in task_moves(plan) if move.source == _NOWHERE}
    if placed:
        snapshot = _with_queries(description, snapshot, placed)
    computed = compute_plan(
        _row(snapshot),
        planner,
        [item for item in plan if not (isinstance(item, TaskMove) and item.source == _NOWHERE)],
        limits_of(policy),
        2 * description.cluster.trigger_ms / 1000,
        budget=given.get("budget"),
    )
    names = _names(description)
    return PlannedCluster(
        planner=planner,
        algorithm=chosen.name,
        parameters=given,
        bounds=result.bounds,
        placed={names.queries[query]: node for query, node in sorted(placed.items())},
        computed=computed,
        texts=[action_text(planned, names) for planned in Plan(computed.actions)],
    )


def _names(description: ClusterDescription) -> Names:
    return Names(
        {number: query.name for number, query in _numbered(description)},
        {number: name for name, number in _streams(description).items()},
        {node.index: node.name for node in description.nodes},
    )


def snapshot_of(description: ClusterDescription) -> ClusterSnapshot:
    """Return the described cluster as a snapshot with its placed queries."""
    placed = [(n, q) for n, q in _numbered(description) if q.name in description.placement]
    single = [(n, q) for n, q in placed if q.tasks == 1]
    ids = _streams(description)
    queries = [_row_of(ids, n, q, description.task_ranges(q)[0].node) for n, q in single]
    split = [_split_row(description, ids, n, q) for n, q in placed if q.tasks > 1]
    return ClusterSnapshot(
        version=0,
        nu=description.cluster.nu,
        nodes=[
            NodeRow(node.index, node.name, node.capacity, node.active)
            for node in sorted(description.nodes, key=lambda node: node.index)
        ],
        streams=_read(description, [*queries, *split]),
        queries=queries,
        state={
            number: query.measured.state_bytes[0]
            for number, query in single
            if query.measured is not None and query.measured.state_bytes
        },
        split=split,
        excluded=_excluded(description, ids),
    )


def _excluded(description: ClusterDescription, ids: Mapping[str, int]) -> list[Excluded]:
    now = timezone.now()
    live = sorted(exclusion.about for exclusion in description.exclusions if exclusion.until > now)
    return [Excluded(kind, ids[subject] if kind == "stream" else subject) for kind, subject in live]


def _numbered(description: ClusterDescription) -> list[tuple[int, QueryPart]]:
    return list(enumerate(description.queries, start=1))


def _streams(description: ClusterDescription) -> dict[str, int]:
    return {stream.name: index for index, stream in enumerate(description.streams, start=1)}


def _row_of(ids: Mapping[str, int], number: int, query: QueryPart, node: int) -> QueryRow:
    return QueryRow(number, query.name, node, _reads(ids, query))


def _reads(ids: Mapping[str, int], query: QueryPart) -> list[int]:
    return sorted(ids[name] for name in query.reads)


def _read(
    description: ClusterDescription, queries: Iterable[QueryRow | SplitQueryRow]
) -> list[StreamRow]:
    used = {stream for query in queries for stream in query.streams}
    weights = enumerate((stream.weight for stream in description.streams), start=1)
    return [StreamRow(number, weight) for number, weight in weights if number in used]


def _split_row(
    description: ClusterDescription, ids: Mapping[str, int], number: int, query: QueryPart
) -> SplitQueryRow:
    measured = query.measured
    return SplitQueryRow(
        number,
        query.name,
        [[item.node, item.first, item.stop] for item in description.task_ranges(query)],
        list(measured.evaluations_per_s if measured else ()) or [0.0] * query.tasks,
        list(measured.state_bytes if measured else ()) or [0] * query.tasks,
        _reads(ids, query),
    )


def _with_unplaced_node(
    description: ClusterDescription, snapshot: ClusterSnapshot
) -> ClusterSnapshot:
    """Return the snapshot with unplaced queries of one task on an additional node."""
    waiting = {
        number: _NOWHERE
        for number, query in _numbered(description)
        if query.tasks == 1 and query.name not in description.placement
    }
    if not waiting:
        return snapshot
    apart = NodeRow(_NOWHERE, "", 1.0, active=False)
    return replace(_with_queries(description, snapshot, waiting), nodes=[*snapshot.nodes, apart])


def _with_queries(
    description: ClusterDescription, snapshot: ClusterSnapshot, placed: Mapping[int, int]
) -> ClusterSnapshot:
    """Return the snapshot with these queries too, by number, on these nodes."""
    ids = _streams(description)
    added = [
        _row_of(ids, number, query, placed[number])
        for number, query in _numbered(description)
        if number in placed
    ]
    queries = sorted([*snapshot.queries, *added])
    streams = _read(description, [*queries, *snapshot.split])
    return replace(snapshot, queries=queries, streams=streams)


def _row(snapshot: ClusterSnapshot) -> Snapshot:
    """Return an unsaved row of the snapshot."""
    if not snapshot.nodes:
        raise Conflict("no_node", "The description has no node")
    text = canonical(snapshot.to_json())
    return Snapshot(
        digest=digest_of(text),
        data=Snapshot.packed(text),
        size=len(text),
        taken_at=timezone.now(),
    )
