"""Plans that would end what is explained: waiting proposals, and planners that fit the reason."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from controlplane.alerts.measures import AlertMeasure
from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.units import ValueUnit
from controlplane.explain.values import PredictedEffect, Remedy, RemedyReason
from controlplane.models import Cluster, Proposal, Task
from controlplane.numbers import counted
from controlplane.planning import measures
from controlplane.planning.adapters import adapters, improved_by, measures_of
from controlplane.planning.sources import planner_title
from controlplane.policies.grades import Grade
from controlplane.watch.loops import loop_named
from controlplane.watch.observation import FULL, ClusterObservation
from controlplane.watch.planner_request import plan_parameters, planners_for

# Waiting proposals that are read, the newest first.
_PROPOSALS: Final = 5
# The planner that redirects streams.
_ADMISSION: Final = "admission"
# The loop of the watch whose planners end what a reason states.
_LOOPS: Final = {
    RemedyReason.HOT_KEY: "skew",
    RemedyReason.ROOM_ELSEWHERE: "overload",
    RemedyReason.ALL_FULL: "capacity",
    RemedyReason.REPLICATION: "replication",
}


def remedies(
    observed: ClusterObservation, node: int | None, cause: Cause | None, measure: str
) -> list[Remedy]:
    """Return the plans that would end it, waiting proposals first.

    `node`: the index of the node that the waiting proposals must touch, None for any proposal.
    """
    waiting = waiting_plans(observed.cluster, "node", node) if observed.is_live else []
    offered = _offered(observed, cause, measure)
    known = {remedy.planner for remedy in waiting}
    rows = [*waiting, *(remedy for remedy in offered if remedy.planner not in known)]
    return [Remedy(**{**vars(remedy), "is_best": place == 0}) for place, remedy in enumerate(rows)]


def stream_remedies(grade: Grade) -> list[Remedy]:
    """Return the plan that relieves a split node near or above its capacity, by its grade."""
    adapter = adapters().get(_ADMISSION)
    if adapter is None or grade not in (Grade.BAD, Grade.WARN):
        return []
    reason = RemedyReason.SPLIT_NODE_FULL
    return [Remedy(adapter.name, adapter.effect, reason, is_best=True)]


def waiting_plans(cluster: Cluster, kind: str, number: int | None) -> list[Remedy]:
    """Return the ready proposals of the cluster with actions on a "node" or "query", newest first.

    `number`: the index of the node or the id of the query, None for all proposals.
    """
    ready = Proposal.awaiting_approval().filter(cluster=cluster)
    rows = ready.defer("imbalance_after", "drift")
    result = []
    for row in rows.order_by("-requested_at", "-id")[:_PROPOSALS]:
        count = len(row.actions) if number is None else _touching(row.actions, kind, number)
        if not count:
            continue
        extent = counted(len(row.actions), "actions")
        if count < len(row.actions):
            extent = f"{count:,} of {extent} involve {kind} {number}"
        result.append(
            Remedy(
                row.planner, _title(row.planner), RemedyReason.WAITING, proposal=row.pk,
                ready_at=row.requested_at, actions=count, extent=extent, effects=_effects(row),
            )
        )  # fmt: skip
    return result


def _title(planner: str) -> str:
    adapter = adapters().get(planner)
    return planner_title(planner) if adapter is None else adapter.effect


def _touching(actions: Iterable[Any], kind: str, number: int) -> int:
    """Return the number of stored actions that move tasks of it, from it or to it, or change it.

    Of the others, those that name no node concern all nodes.
    """
    count = 0
    for row in actions:
        if isinstance(row, list):
            count += number in (row[2:4] if kind == "node" else row[:1])
        else:
            named = row["action"].get(kind)
            count += named == number or (named is None and kind == "node")
    return count


def _effects(proposal: Proposal) -> list[PredictedEffect]:
    """Return what a proposal improves, and the load of the fullest node."""
    names = {*improved_by(proposal.planner), measures.FULLEST.name}
    result = []
    for measure in measures_of(proposal.planner):
        before, after = proposal.before.get(measure.name), proposal.after.get(measure.name)
        if measure.name in names and _is_number(before) and _is_number(after):
            result.append(_effect(measure, before, after))
    return result


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _effect(measure: measures.Measure, before: float, after: float) -> PredictedEffect:
    return PredictedEffect(measure.name, measure.title, ValueUnit(measure.unit), before, after)


def _offered(observed: ClusterObservation, cause: Cause | None, measure: str) -> list[Remedy]:
    """Return the planners whose plans end the reasons, one for each reason, in their order."""
    result: list[Remedy] = []
    for reason in _reasons(observed, cause, measure, observed.split_queries):
        loop = loop_named(_LOOPS[reason])
        planners = planners_for(observed, loop) if loop is not None else []
        if loop is not None and planners:
            parameters = plan_parameters(planners[0], loop, observed.policy)
            result.append(Remedy(planners[0], _title(planners[0]), reason, parameters))
    return result


def _reasons(
    observed: ClusterObservation, cause: Cause | None, measure: str, split: int
) -> Sequence[RemedyReason]:
    """Return why plans would help: what the cause is, and whether other nodes have room."""
    reasons = []
    if cause is not None and cause.code is CauseCode.HOT_KEY and split and _has_tasks(cause):
        reasons.append(RemedyReason.HOT_KEY)
    if measure == AlertMeasure.REPLICATION:
        reasons.append(RemedyReason.REPLICATION)
    full = observed.full_share
    if full is not None and full <= FULL:
        reasons.append(RemedyReason.ROOM_ELSEWHERE)
    # Also beside moves: load shedding takes effect at once.
    if measure in (AlertMeasure.LOAD, AlertMeasure.LATENCY) and full is not None:
        reasons.append(RemedyReason.ALL_FULL)
    return reasons


def _has_tasks(cause: Cause) -> bool:
    """Return True if tasks of the query of a hot key are on its node.

    Only then a key grouping changes how many records of the key the node receives.
    """
    tasks = Task.objects.filter(query=cause.query, node__index=cause.node or 0)
    return cause.node is not None and tasks.exists()
