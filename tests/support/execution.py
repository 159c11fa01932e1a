"""Executions driven by hand: ready proposals, steps that the pipeline acknowledges."""

from collections.abc import Hashable

from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.background import ingestion
from controlplane.models import Cluster, Execution, Node, Proposal, Query, Step, Task
from controlplane.plans.plan import TaskMove, task_moves
from controlplane.policies.store import policy_of
from controlplane.proposals import computation, decisions, requests
from controlplane.proposals.executions import progression
from controlplane.topology.apply import TopologyChange, apply
from controlplane.wire.routing.query_actions import MoveTasks
from tests.support.cluster import placed, telemetry
from tests.support.prepared import prepared

_BEGIN_MS = 1_800_000_000_000


def scattered(by: Actor, cluster: Cluster, count: int = 12) -> Cluster:
    """Put queries on three streams onto the nodes so that each stream goes to all of them."""
    rows = placed(by, cluster, {f"q{i}": [f"s{i % 3}"] for i in range(count)})
    nodes = list(Node.objects.filter(cluster=cluster).order_by("index"))
    ops = []
    for number, query in enumerate(rows):
        node = nodes[number % len(nodes)]
        ops.append(MoveTasks(query.pk, ((node.index, 0, 1),)))
    cluster.refresh_from_db()
    apply(cluster, ops, TopologyChange("scattered"))
    Cluster.objects.filter(pk=cluster.pk).update(desired="running")
    cluster.refresh_from_db()
    return cluster


def ready(by: Actor, cluster: Cluster) -> Proposal:
    """Return a proposal that a planner has computed."""
    proposal = requests.request(by, cluster, "mms", {})
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == "ready", proposal.error
    return proposal


def prepared_scattered(by: Actor, cluster: Cluster) -> Cluster:
    """Put twelve queries onto the nodes as `scattered` does; for a cluster without any."""
    prepared("scattered", lambda: scattered(by, cluster), *_depends(by, cluster))
    cluster.refresh_from_db()
    return cluster


def prepared_plan(by: Actor, cluster: Cluster) -> Proposal:
    """Return the proposal of `ready` for a cluster of `prepared_scattered`."""
    return prepared("plan", lambda: ready(by, cluster), *_depends(by, cluster))


def _depends(by: Actor, cluster: Cluster) -> tuple[Hashable, ...]:
    return by.name, by.user.pk, cluster.pk, policy_of(cluster).model_dump_json()


def begun(by: Actor, cluster: Cluster) -> Proposal:
    """Return a proposal whose first step is published."""
    proposal = ready(by, cluster)
    decisions.approve(by, proposal, proposal.seal)
    progression.advance(proposal.pk)
    proposal.refresh_from_db()
    return proposal


def execution_row(cluster: Cluster) -> Execution:
    """Return the execution of a proposal without actions, as a row alone."""
    now = timezone.now()
    proposal = Proposal.objects.create(
        cluster=cluster, planner="placement", algorithm="mms", requested_at=now, seal="a" * 64,
        state="executing", approved_by="an approver", approved_at=now,
    )  # fmt: skip
    return Execution.objects.create(proposal=proposal, cluster=cluster, started_at=now, cap=10)


def under_way(proposal: Proposal) -> Step | None:
    """Return the step that the pipeline has not acknowledged yet."""
    return Step.objects.filter(execution__proposal=proposal, state="published").first()


def batch(
    cluster: Cluster, step: Step, *, size: int = 1000, gap_ms: int = 700, p95: float = 300.0
) -> None:
    """Let the pipeline report the batch in which all tasks of a step have come."""
    assert step.version is not None
    number = Step.objects.count() + (cluster.last_batch or 0)
    moves = [{"query": 1, "task": 0, "from": 0, "bytes": size, "waited": 2}] * step.tasks
    arrived = [{"query": 1, "task": 0, "to": 1, "gap_ms": gap_ms}] * step.tasks
    latency = {"n": 1, "p50": 100.0, "p95": p95, "p99": p95}
    row = telemetry(
        number, _BEGIN_MS + 1000 * number, step.version.version,
        moves=moves, arrived_tasks=arrived, latency=latency,
    )  # fmt: skip
    ingestion.record(cluster, [row])
    cluster.refresh_from_db()


def step_through(proposal: Proposal) -> Step:
    """Acknowledge the step under way, which there must be, and go on; return the step."""
    step = under_way(proposal)
    assert step is not None
    batch(proposal.cluster, step)
    progression.advance(proposal.pk)
    proposal.refresh_from_db()
    return step


def carried_out(proposal: Proposal) -> Execution:
    """Acknowledge every step until nothing is under way any more."""
    for _ in range(100):
        progression.advance(proposal.pk)
        step = under_way(proposal)
        if step is None:
            break
        batch(proposal.cluster, step)
    proposal.refresh_from_db()
    return Execution.objects.get(proposal=proposal)


def moves_of(proposal: Proposal) -> list[TaskMove]:
    """Return the moves of tasks among the actions of a proposal."""
    return task_moves(proposal.plan)


def moved_names(proposal: Proposal) -> list[str]:
    """Return the names of the queries that the actions of a proposal move, in their order."""
    names = dict(Query.objects.values_list("pk", "name"))
    return [names[move.query] for move in moves_of(proposal)]


def nodes_of() -> dict[int, int]:
    """Return the node index of every query's first task."""
    return dict(Task.objects.filter(index=0).values_list("query_id", "node__index"))
