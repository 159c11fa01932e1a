"""Which actions of a plan can still be applied, and why the others cannot."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from controlplane.models import Cluster, Query, Task
from controlplane.pagination.chunks import chunks
from controlplane.planning.resolution import nodes_of
from controlplane.plans.plan import OtherAction, PlannedAction, TaskMove, task_moves
from controlplane.topology.apply import scope_of
from controlplane.topology.rows import read_part
from controlplane.wire.errors import InconsistentDelta
from controlplane.wire.routing.actions import Action, TableDraft
from controlplane.wire.routing.cluster_actions import OF_STREAM, SetDropRule
from controlplane.wire.routing.drop_rules import ALWAYS
from controlplane.wire.routing.query_actions import SetTaskCount


class Obstacle(StrEnum):
    """Why an action of a plan cannot be applied; stored with steps and in proposals."""

    ENDED = "ended"
    CHANGED = "changed"
    NO_NODE = "no_node"


# What each obstacle means, for people.
OBSTACLES: Final[Mapping[str, str]] = {
    Obstacle.ENDED: "the query or stream is gone",
    Obstacle.CHANGED: "something else changed it since the plan was computed",
    Obstacle.NO_NODE: "the cluster does not have the node any more",
}


def obstacles(cluster: Cluster, plan: Sequence[PlannedAction]) -> list[Obstacle | None]:
    """Return what stops each action if the others are applied in their order, None if nothing.

    An action can be applied if its object is as it was when the plan was computed, or as the
    earlier actions of the plan leave it.
    """
    owners = owners_of(move.query for move in task_moves(plan))
    others = [planned.action for planned in plan if not isinstance(planned, TaskMove)]
    draft = read_part(cluster, scope_of(others, everything=True)) if others else None
    stopped_by: list[Obstacle | None] = []
    for planned in plan:
        if isinstance(planned, TaskMove):
            stopped_by.append(_of_move(cluster, owners, planned))
            if draft is not None and stopped_by[-1] is None and planned.query in draft.queries:
                planned.action.apply_to(draft)
            continue
        assert draft is not None
        stopped_by.append(_of_other(draft, planned))
        if isinstance(planned.action, SetTaskCount) and stopped_by[-1] is None:
            _set_owners(owners, planned.action.query, draft)
    return stopped_by


def _set_owners(owners: dict[tuple[int, int], int], query: int, draft: TableDraft) -> None:
    """Let the owners of a query's tasks be those of the draft."""
    for task in [task for task in owners if task[0] == query]:
        del owners[task]
    owners |= {(query, task): node for task, node in enumerate(draft.route(query).owners())}


def count_obstacles(stopped_by: Iterable[Obstacle | None]) -> dict[str, int]:
    """Return the number of actions that each obstacle stops."""
    return dict(Counter(str(obstacle) for obstacle in stopped_by if obstacle is not None))


def owners_of(queries: Iterable[int]) -> dict[tuple[int, int], int]:
    """Return the node index of every task of these queries that run, by query and task."""
    owners: dict[tuple[int, int], int] = {}
    for ids in chunks(sorted(set(queries))):
        rows = Task.objects.filter(query__in=ids, query__state=Query.State.RUNNING)
        owners |= {
            (query, task): node
            for query, ranges in Task.ranges(rows).items()
            for node, first, stop in ranges
            for task in range(first, stop)
        }
    return owners


def _of_move(
    cluster: Cluster, owners: dict[tuple[int, int], int], move: TaskMove
) -> Obstacle | None:
    owner = owners.get((move.query, move.task))
    if owner is None:
        return Obstacle.ENDED
    if owner != move.source:
        return Obstacle.CHANGED
    if not 0 <= move.target < cluster.slots:
        return Obstacle.NO_NODE
    owners[move.query, move.task] = move.target
    return None


def _of_other(draft: TableDraft, planned: OtherAction) -> Obstacle | None:
    action = planned.action
    if any(not 0 <= node < draft.node_count for node in nodes_of(action)):
        return Obstacle.NO_NODE
    if isinstance(action, SetDropRule) and action.query:
        route = draft.queries.get(action.query)
        if route is None or action.stream not in route.streams:
            return Obstacle.ENDED
    if isinstance(action, OF_STREAM) and action.stream not in draft.splits:
        return Obstacle.ENDED
    try:
        present = action.inverse(draft)
        # Of actions with several inverses only the first is about the object as a whole.
        if planned.before and list(map(_lasting, present)) != list(map(_lasting, planned.before)):
            return Obstacle.CHANGED
        action.apply_to(draft)
    except InconsistentDelta:
        return Obstacle.ENDED
    return None


def _lasting(action: Action) -> Action:
    """Return an action of which drop rules have their last step only, and none if it is 0.

    Housekeeping deletes the earlier steps, and a planned rule of windows has no start yet.
    """
    if not isinstance(action, SetDropRule) or action.rule is None:
        return action
    share = action.rule.steps[-1][1]
    return replace(action, rule=replace(action.rule, steps=((ALWAYS, share),)) if share else None)
