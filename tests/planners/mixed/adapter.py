"""How the planner is connected."""

from typing import Any

from algorithms.partitioning.catalog import grouping_text
from controlplane.planning.adapter import PlannerAdapter, PlannerResult, PlanRequest
from controlplane.planning.load_model import LoadModel
from controlplane.planning.measures import Better, Measure, Unit
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import AssignStream, SetDropRule, SetNodeActive
from controlplane.wire.routing.drop_rules import ALWAYS, INPUT, DropRule
from controlplane.wire.routing.query_actions import MoveTasks, SetKeyGrouping, SetTaskCount
from tests.planners.mixed.inputs import MixedInput
from tests.planners.mixed.planner import PLANNER, MixedProblem


def _relief(_: ClusterSnapshot, model: LoadModel, __: Any) -> float:
    offered = float(model.offered.sum())
    return 1 - float(model.rates.sum()) / offered if offered else 0.0


def _oldest(snapshot: ClusterSnapshot, _: Any, __: Any) -> float | None:
    given = snapshot.input(MixedInput)
    return max(given.ages.values(), default=None) if given is not None else None


def plan(request: PlanRequest) -> PlannerResult:
    """Return moves, drop rules of records and of windows, a redirect, another key grouping."""
    snapshot, share = request.snapshot, request.parameters["share"]
    problem = MixedProblem(
        {query.id: query.node for query in snapshot.queries},
        tuple(node.index for node in snapshot.nodes if node.active),
        tuple(stream.id for stream in snapshot.streams),
        snapshot.split_count,
        share,
    )
    found = request.algorithm.solve(problem, request.own, request.progress)
    records, windows = found.relieved
    present = snapshot.splits[found.redirected]
    # More and more of one stream is dropped, so that the plan takes three steps at least.
    ladder = [SetDropRule(records, INPUT, DropRule.of(share * n / 3, INPUT)) for n in (1, 2, 3)]
    actions: list[Action] = [
        ladder[0],
        *(MoveTasks(query, ((node, 0, 1),)) for query, node in found.targets.items()),
        ladder[1],
        SetDropRule(windows, INPUT, DropRule(((ALWAYS, share),), INPUT, 2000, 2000)),
        AssignStream(found.redirected, (present + 1) % snapshot.split_count),
        ladder[2],
    ]
    tasks = {query.id: query.ranges[-1][2] for query in snapshot.split}
    for row in snapshot.groupings:
        other = "" if row.grouping else grouping_text("partial_key")
        actions.append(SetKeyGrouping(row.query, other))
        if not row.joins:
            count = tasks[row.query]
            added = ((problem.nodes[0], count, count + 2),)
            actions.append(SetTaskCount(row.query, count + 2, added))
    for query, _, ranges, *_ in snapshot.split:
        for number, (node, task, stop) in enumerate(ranges):
            if node == found.closed or not number:
                target = next(other for other in problem.nodes[:-1] if other != node)
                end = stop if node == found.closed else task + 1
                actions.append(MoveTasks(query, ((target, task, end),)))
    return PlannerResult([*actions, SetNodeActive(found.closed, active=False)], {"relief": 1.0})


ADAPTER = PlannerAdapter(
    planner=PLANNER,
    default="rotate",
    effect="actions of every kind",
    hint="Rotates queries, sheds load, redirects a stream and closes the last node.",
    plan=plan,
    improves=("relief",),
    measures=(
        Measure("oldest", "Age of the oldest query", Unit.RATIO, Better.NEITHER, _oldest),
        Measure("relief", "Load shed", Unit.SHARE, Better.HIGHER, _relief),
    ),
    moves_state=True,
)
