"""Resolution of a planner's actions: one task per move, replaced values and moved state."""

from collections.abc import Iterable, Iterator
from typing import Final

from controlplane.errors import Conflict
from controlplane.plans.plan import PLANNABLE, OtherAction, PlannedAction, TaskMove
from controlplane.plans.snapshot import ClusterSnapshot, GroupingRow
from controlplane.wire.errors import InconsistentDelta
from controlplane.wire.routing.action_json import kind_of
from controlplane.wire.routing.actions import Action, NodeState, ObjectKind, TableDraft
from controlplane.wire.routing.cluster_actions import SetDropRule
from controlplane.wire.routing.drop_rules import INPUT, DropRule
from controlplane.wire.routing.ladder import Ladder
from controlplane.wire.routing.query_actions import MoveTasks, SetAggregators, SetTaskCount
from controlplane.wire.routing.route import NO_AGGREGATOR, Route, with_owners

# As much of the text of a join as a snapshot knows.
JOIN_TEXT: Final = '{"right":[0]}'


def resolve(snapshot: ClusterSnapshot, actions: Iterable[Action]) -> list[PlannedAction]:
    """Return the actions as a plan on this snapshot, without moves to the present node.

    Raises `Conflict` impossible_action with the first action that the snapshot does not allow.
    """
    owners, state = _owners(snapshot)
    draft: TableDraft | None = None
    plan: list[PlannedAction] = []
    moves: list[TaskMove] = []
    for index, action in enumerate(actions):
        try:
            if isinstance(action, MoveTasks):
                moves += _moves(action, owners, state)
                continue
            draft = draft or _draft(snapshot)
            _require(action, draft)
            if isinstance(action, SetTaskCount):
                before = _set_task_count(action, draft, owners, state)
            else:
                before = action.inverse(draft)
                action.apply_to(draft)
        except (InconsistentDelta, KeyError) as error:
            message = f"Action {index + 1} of the plan, {kind_of(action)}: {error}"
            raise Conflict("impossible_action", message, {"action": index}) from None
        if before != (action,):
            plan += [*_once_per_task(moves), OtherAction(action, before)]
            moves = []
    return plan + _once_per_task(moves)


def _owners(snapshot: ClusterSnapshot) -> tuple[dict[tuple[int, int], int], dict[int, list[int]]]:
    """Return the node index of every task by query and task, and the bytes per task by query."""
    owners = {(query, 0): node for query, _, node, _ in snapshot.queries}
    state = {}
    for query, _, ranges, _, sizes, _ in snapshot.split:
        state[query] = sizes
        for node, first, stop in ranges:
            owners |= {(query, task): node for task in range(first, stop)}
    return owners, state | {query: [size] for query, size in snapshot.state.items()}


def _once_per_task(moves: Iterable[TaskMove]) -> list[PlannedAction]:
    """Return consecutive moves with one move per task, to its last target."""
    result: dict[tuple[int, int], TaskMove] = {}
    for move in moves:
        task = move.query, move.task
        earlier = result.get(task)
        result[task] = move if earlier is None else earlier._replace(target=move.target)
    return [move for move in result.values() if move.source != move.target]


def _set_task_count(
    action: SetTaskCount,
    draft: TableDraft,
    owners: dict[tuple[int, int], int],
    state: dict[int, list[int]],
) -> tuple[Action, ...]:
    """Apply the action to the draft, the owners and the bytes per task; return its inverse."""
    query = action.query
    route = draft.route(query)
    # The draft does not know the moves before.
    present = [owners.pop((query, task)) for task in range(len(route.owners()))]
    draft.queries[query] = with_owners(route, present)
    before = action.inverse(draft)
    action.apply_to(draft)
    after = draft.queries[query].owners()
    owners |= {(query, task): node for task, node in enumerate(after)}
    sizes = [*state.get(query, ()), *[0] * len(after)]
    state[query] = sizes[: len(after)]
    return before


def _moves(
    action: MoveTasks, owners: dict[tuple[int, int], int], state: dict[int, list[int]]
) -> Iterator[TaskMove]:
    sizes = state.get(action.query, (0,))
    for task, target in action.tasks():
        source = owners[action.query, task]
        if source != target:
            owners[action.query, task] = target
            yield TaskMove(action.query, task, source, target, sizes[task])


def _require(action: Action, draft: TableDraft) -> None:
    """Raise `InconsistentDelta` unless plans may have the action and the draft has its objects."""
    if not isinstance(action, PLANNABLE):
        raise InconsistentDelta("plans cannot have this kind of action")
    for node in nodes_of(action):
        draft.node(node)
    for subject in action.subjects():
        if subject.kind == ObjectKind.STREAM and subject.id not in draft.splits:
            raise InconsistentDelta(f"there is no stream {subject.id}")
    if isinstance(action, SetDropRule):
        route = None if action.query == INPUT else draft.route(action.query)
        read = draft.splits if route is None else route.streams
        if action.stream not in read:
            raise InconsistentDelta(f"there is no edge {action.stream} to {action.query}")


def nodes_of(action: Action) -> set[int]:
    """Return the nodes to which an action gives something."""
    nodes = {getattr(action, name, -1) for name in ("node", "aggregator")}
    nodes |= set(getattr(action, "more_aggregators", ()))
    if isinstance(action, SetAggregators):
        nodes |= set(action.nodes)
    for name in ("moves", "task_ranges", "added"):
        nodes |= {node for node, _, _ in getattr(action, name, ())}
    return nodes - {-1}


def _draft(snapshot: ClusterSnapshot) -> TableDraft:
    """Return the routing table of a snapshot, without the texts and incarnations of queries."""
    groupings = {row.query: row for row in snapshot.groupings}
    none = GroupingRow(0, "", NO_AGGREGATOR)
    routes = {}
    for query, _, node, streams in snapshot.queries:
        row = groupings.get(query, none)
        more = row.grouping, row.aggregator, tuple(row.more_aggregators)
        routes[query] = Route(0, node, tuple(streams), "", (), *more)
    for query, _, placed, _, _, streams in snapshot.split:
        ranges = tuple((node, first, stop) for node, first, stop in placed)
        row = groupings.get(query, none)
        text = JOIN_TEXT if row.joins else ""
        more = row.grouping, row.aggregator, tuple(row.more_aggregators)
        routes[query] = Route(0, ranges[0][0], tuple(streams), text, ranges, *more)
    return TableDraft(
        queries=routes,
        splits=dict(snapshot.splits),
        drop_rules={
            (stream, query): DropRule.from_json(rule) for stream, query, rule in snapshot.drop_rules
        },
        nodes={n.index: NodeState(n.capacity, n.emulated, n.active) for n in snapshot.nodes},
        node_count=len(snapshot.nodes),
        split_count=snapshot.split_count,
        split_capacity=snapshot.split_capacity,
        split_emulated=snapshot.split_emulated,
        partitions=dict(snapshot.partitions),
        ladder=Ladder.from_json(snapshot.ladder) if snapshot.ladder is not None else None,
    )
