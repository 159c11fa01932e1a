"""Adapter of the admission planner: redirections of streams, split nodes, tasks of queries."""

from typing import Any, Final

from algorithms.admission.planner import PARALLELISM, PLANNER
from controlplane.errors import Conflict
from controlplane.planners.admission.expected_rates import expected_rates, split_loads
from controlplane.planners.admission.inputs import AdmissionInput
from controlplane.planners.admission.parallelism import QUERY_OVERLOAD, plan_parallelism
from controlplane.planners.admission.problem import Outlook, actions_of, plan_with_room
from controlplane.planning import measures
from controlplane.planning.adapter import PlannerAdapter, PlannerResult, PlanRequest
from controlplane.planning.measures import Better, Measure, Unit
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.figures import ARRIVALS_PERIOD_S
from controlplane.wire.routing.actions import TableDraft
from controlplane.wire.routing.cluster_actions import AssignPartition, AssignStream, SetSplitCount
from controlplane.wire.routing.split_assignment import SplitAssignment

NO_STREAM: Final = "The cluster has no stream, so there is nothing to assign"


def plan_admission(request: PlanRequest) -> PlannerResult:
    """Plan the split nodes of all streams, or the tasks of queries, for the next period.

    Raises `Conflict` no_stream, no_capacity, no_costs or bad_period, and the errors of the
    algorithm: `StreamTooLarge` names a stream that no split node can read, `LatencyTooShort` a
    bound that no number of nodes keeps.
    """
    snapshot = request.snapshot
    given = snapshot.input(AdmissionInput)
    if given is None or not given.streams:
        raise Conflict("no_stream", NO_STREAM)
    outlook = outlook_of(request.parameters)
    if request.algorithm.name == PARALLELISM:
        return PlannerResult(plan_parallelism(snapshot, request.own, outlook))
    excluded = [int(subject) for kind, subject in snapshot.excluded if kind == "stream"]
    split, plan = plan_with_room(
        lambda problem: request.algorithm.solve(problem, request.own, request.progress),
        given, snapshot.assignment, outlook, fixed=excluded,
    )  # fmt: skip
    return PlannerResult(actions_of(split, plan, snapshot.split_count))


def outlook_of(parameters: Any) -> Outlook:
    """Return how rates are predicted, from the parameters of a plan."""
    return Outlook(
        parameters["horizon"], parameters["period_s"], parameters["alpha"], parameters["gamma"]
    )


def _after(snapshot: ClusterSnapshot, plan: Any) -> SplitAssignment:
    """Return the split nodes of streams and partitions after a plan."""
    draft = TableDraft(
        splits=dict(snapshot.splits),
        partitions=dict(snapshot.partitions),
        split_count=snapshot.split_count,
    )
    for planned in plan:
        if isinstance(planned.action, AssignStream | AssignPartition | SetSplitCount):
            planned.action.apply_to(draft)
    return draft.assignment


def _split_nodes(snapshot: ClusterSnapshot, _: Any, plan: Any) -> int | None:
    given = snapshot.input(AdmissionInput)
    if given is None:
        return None
    shares = given.reading(_after(snapshot, plan)).shares()
    return len({split for own in shares.values() for split in own})


def _redirected(snapshot: ClusterSnapshot, _: Any, plan: Any) -> int | None:
    given = snapshot.input(AdmissionInput)
    if given is None:
        return None
    before, after = given.reading(snapshot.assignment), _after(snapshot, plan)
    partitions = (place for stream in snapshot.splits for place in before.partitions(stream))
    return sum(after.of(*place) != snapshot.assignment.of(*place) for place in partitions)


def _split_overload(snapshot: ClusterSnapshot, _: Any, plan: Any) -> float | None:
    """Return the expected records/s beyond the capacities of split nodes in their worst periods."""
    given = snapshot.input(AdmissionInput)
    if given is None or not given.capacity:
        return None
    loads = split_loads(given, _after(snapshot, plan), expected_rates(given))
    return float(sum(max(0.0, float(load.max()) - given.capacity) for load in loads.values()))


SPLIT_OVERLOAD: Final = Measure(
    measures.SPLIT_OVERLOAD, "Overload of split nodes", Unit.RATE, Better.LOWER, _split_overload
)
SPLIT_NODES: Final = Measure(
    "split_nodes", "Open split nodes", Unit.COUNT, Better.LOWER, _split_nodes
)

ADAPTER: Final = PlannerAdapter(
    planner=PLANNER,
    default="profile",
    effect="redirections of streams",
    hint="Redirects streams to other split nodes, and scales queries, before their load arrives.",
    plan=plan_admission,
    improves=(SPLIT_OVERLOAD.name, SPLIT_NODES.name, QUERY_OVERLOAD.name),
    defaults={
        "period_s": lambda _: float(ARRIVALS_PERIOD_S),
        "foresee": lambda _: True,
        "consolidate": lambda _: True,
    },
    measures=(
        SPLIT_OVERLOAD,
        SPLIT_NODES,
        QUERY_OVERLOAD,
        Measure("redirected", "Redirected streams", Unit.COUNT, Better.NEITHER, _redirected),
    ),
    compared=0,
    # Policies approve redirections, and this changes queries.
    decided_by_people=frozenset({PARALLELISM}),
)
