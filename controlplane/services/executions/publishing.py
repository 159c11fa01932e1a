"""One step of an execution: a routing version, its rows, and the step's row, in one transaction."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from controlplane.models import Cluster, Execution, Node, Query, Step, Task
from controlplane.problems.carrying import tasks_of
from controlplane.selectors.metrics import latest_values
from controlplane.services import routing
from controlplane.services.proposals.drift import places_of
from controlplane.wire.routing import MoveTasks, Op

Row = Mapping[str, Any]
# A query's task, and the nodes that it leaves and goes to.
Transfer = tuple[int, int, int]
CHUNK = 500


@dataclass(frozen=True)
class Chosen:
    """The moves of a step that can be made, by query its (task, from, to), and those left out.

    skipped: places of moves whose query has ended, or is not where the plan has it.
    """

    transfers: Mapping[int, Sequence[Transfer]]
    skipped: list[int]

    @property
    def tasks(self) -> int:
        """Return how many tasks change their node."""
        return sum(map(len, self.transfers.values()))


def chosen(moves: Sequence[Row], first: int) -> Chosen:
    """Return which of these moves can be made; the first of them is at place `first`."""
    where = places_of(move["query"] for move in moves)
    transfers: dict[int, list[Transfer]] = defaultdict(list)
    skipped = []
    for at, move in enumerate(moves, start=first):
        tasks = range(*tasks_of(move))
        if any(where.get((move["query"], task)) != move["from"] for task in tasks):
            skipped.append(at)
            continue
        for task in tasks:
            transfers[move["query"]].append((task, move["from"], move["to"]))
            where[move["query"], task] = move["to"]
    return Chosen(dict(transfers), skipped)


def publish(execution: Execution, first: int, past: int, moves: Sequence[Row], actor: str) -> Step:
    """Write the next step, within the caller's transaction: moves [first, past) are `moves`.

    Raises `VersionMoved` where another writer took the routing version.
    """
    cluster = Cluster.objects.get(pk=execution.cluster_id)
    found = chosen(moves, first)
    number = execution.steps.count() + 1
    sample = latest_values(cluster) or {}
    step = Step(
        execution=execution,
        number=number,
        direction=execution.direction,
        first=first,
        past=past,
        skipped=found.skipped,
        tasks=found.tasks,
        cap=execution.cap,
        cap_reason=execution.cap_reason,
        balance_before=sample.get("imbalance"),
        published_at=timezone.now(),
    )
    if found.transfers:
        ops = list(_operations(found.transfers))
        told = f"Proposal {execution.proposal_id}, step {number}: {found.tasks} tasks moved"
        step.version = routing.append(
            cluster.pk, cluster.routing_version, ops, told, actor=actor,
            proposal=execution.proposal,
        )  # fmt: skip
        _move_rows(cluster, found.transfers, step.version.version)
    else:
        # Nothing is left of it to do: there is nothing to wait for.
        step.state, step.acknowledged_at = Step.State.DONE, step.published_at
    step.save()
    return step


def _operations(transfers: Mapping[int, Sequence[Transfer]]) -> Iterable[Op]:
    """Yield an operation per query; neighbours that go to the same node go as one."""
    for query, tasks in transfers.items():
        spans: list[list[int]] = []
        for task, _, target in sorted(tasks):
            if spans and spans[-1][0] == target and spans[-1][2] == task:
                spans[-1][2] = task + 1
            else:
                spans.append([target, task, task + 1])
        yield MoveTasks(query, tuple((node, begin, end) for node, begin, end in spans))


def _move_rows(cluster: Cluster, transfers: Mapping[int, Sequence[Transfer]], version: int) -> None:
    nodes = dict(Node.objects.filter(cluster=cluster).values_list("index", "id"))
    counts = dict(Query.objects.filter(pk__in=transfers).values_list("id", "task_count"))
    whole: dict[int, list[int]] = defaultdict(list)
    for query, tasks in transfers.items():
        if counts[query] == 1:
            whole[tasks[-1][2]].append(query)
        else:
            _rewrite(query, counts[query], tasks, nodes, version)
    for target, queries in whole.items():
        for begin in range(0, len(queries), CHUNK):
            rows = Task.objects.filter(query__in=queries[begin : begin + CHUNK])
            rows.update(node=nodes[target], since_version=version)


def _rewrite(
    query: int, count: int, tasks: Sequence[Transfer], nodes: Mapping[int, int], version: int
) -> None:
    """Write the intervals of a split query anew."""
    owner = {task: node for (_, task), node in places_of([query]).items()}
    owner |= {task: target for task, _, target in tasks}
    begins = [task for task in range(count) if task == 0 or owner[task] != owner[task - 1]]
    Task.objects.filter(query=query).delete()
    Task.objects.bulk_create(
        Task(query_id=query, index=task, node_id=nodes[owner[task]], since_version=version)
        for task in begins
    )
