"""One step of an execution: a routing version, its rows, and the step's row, in one transaction."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from controlplane.models import Cluster, Execution, Step
from controlplane.planning.execution_plan import tasks_of
from controlplane.proposals.drift import places_of
from controlplane.telemetry.time_series import latest_values
from controlplane.topology.apply import Change, apply
from controlplane.wire.routing import MoveTasks, ranges_of

Row = Mapping[str, Any]
# A query's task, and the nodes that it leaves and goes to.
Transfer = tuple[int, int, int]


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
        summary = f"Proposal {execution.proposal_id}, step {number}: {found.tasks} tasks moved"
        actions = [
            MoveTasks(query, ranges_of([(task, target) for task, _, target in sorted(tasks)]))
            for query, tasks in found.transfers.items()
        ]
        change = Change(summary, author=actor)
        step.version = apply(cluster, actions, change, proposal=execution.proposal).version
    else:
        # Nothing is left of it to do: there is nothing to wait for.
        step.state, step.acknowledged_at = Step.State.DONE, step.published_at
    step.save()
    return step
