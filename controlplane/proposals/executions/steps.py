"""Steps of executions: a routing version and its rows, written in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.utils import timezone

from controlplane.errors import Conflict
from controlplane.models import Cluster, Execution, Step
from controlplane.plans.plan import PlannedAction, TaskMove, planned_action
from controlplane.telemetry.time_series import latest_values
from controlplane.topology.applicability import Obstacle, obstacles
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.drop_rules import scheduled
from controlplane.topology.rows import Scope, read_part
from controlplane.wire.routing.action_json import action_from_json, action_to_json
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import SetDropRule


@dataclass(frozen=True)
class Selection:
    """The applicable actions of a step by place, and the codes of the skipped ones.

    `cluster`: with the routing version for which they were chosen. `effective_at`: the event time
    (ms) at which the last action takes effect, None if all take effect with the routing version.
    """

    cluster: Cluster
    actions: dict[int, Action]
    tasks: int
    skipped: list[tuple[int, str]]
    effective_at: int | None


def select(cluster: Cluster, plan: Sequence[PlannedAction], first: int) -> Selection:
    """Return the actions that can be applied now; the first of `plan` is at place `first`.

    Call it outside of transactions: the start of a drop of windows depends on the log. Raises
    `Away` if that is unavailable.
    """
    actions: dict[int, Action] = {}
    skipped: list[tuple[int, str]] = []
    times: list[int] = []
    tasks = 0
    for place, (planned, obstacle) in enumerate(
        zip(plan, obstacles(cluster, plan), strict=True), start=first
    ):
        if obstacle is not None:
            skipped.append((place, str(obstacle)))
            continue
        tasks += isinstance(planned, TaskMove)
        try:
            actions[place], effective_at = _timed(cluster, planned.action)
        except Conflict:
            skipped.append((place, str(Obstacle.CHANGED)))
            continue
        if effective_at is not None:
            times.append(effective_at)
    return Selection(cluster, actions, tasks, skipped, max(times, default=None))


def _timed(cluster: Cluster, action: Action) -> tuple[Action, int | None]:
    """Return the published action and the event time at which it takes effect."""
    if not isinstance(action, SetDropRule):
        return action, None
    edge = action.stream, action.query
    present = read_part(cluster, Scope(edges={edge})).drop_rules.get(edge)
    rule, effective_at = scheduled(cluster, action.stream, present, action.rule)
    return replace(action, rule=rule), effective_at


def publish(execution: Execution, first: int, stop: int, chosen: Selection, author: str) -> Step:
    """Publish the next step, of the actions [first, stop), in the caller's transaction.

    The inverse of each action is stored. Raises `VersionMoved` if another writer has published the
    routing version since the selection.
    """
    number = execution.steps.count() + 1
    sample = latest_values(chosen.cluster) or {}
    step = Step(
        execution=execution,
        number=number,
        direction=execution.direction,
        first=first,
        stop=stop,
        applied=len(chosen.actions),
        skipped=chosen.skipped,
        tasks=chosen.tasks,
        effective_at=chosen.effective_at,
        cap=execution.cap,
        cap_reason=execution.cap_reason,
        balance_before=sample.get("imbalance"),
        published_at=timezone.now(),
    )
    if chosen.actions:
        _apply(step, chosen, author)
    else:
        # Without an applied action, the step is done.
        step.state, step.acknowledged_at = Step.State.DONE, step.published_at
    step.save()
    return step


def _apply(step: Step, chosen: Selection, author: str) -> None:
    """Apply the actions of a step as one routing version; store their inverses."""
    proposal, count = step.execution.proposal, len(chosen.actions)
    summary = f"Proposal {proposal.pk}, step {step.number}: {count} actions"
    applied = apply(
        chosen.cluster,
        list(chosen.actions.values()),
        TopologyChange(summary, author=author),
        proposal=proposal,
        inverses=True,
    )
    step.version = applied.version
    step.inverses = [
        [place, [action_to_json(action) for action in inverse]]
        for place, inverse in zip(chosen.actions, applied.inverses, strict=True)
    ]


def rollback_of(execution: Execution) -> list[PlannedAction]:
    """Return the stored inverses of the applied actions, the last one first."""
    steps = execution.steps.filter(direction=Execution.Direction.FORWARD).order_by("-number")
    plan = execution.proposal.plan
    rollback: list[PlannedAction] = []
    for rows in steps.values_list("inverses", flat=True):
        for place, inverse in reversed(rows):
            applied = plan[place]
            # Several actions may revert one action together.
            before = (applied.action,) if len(inverse) == 1 else ()
            rollback += [
                planned_action(action_from_json(action), before, applied.bytes)
                for action in inverse
            ]
    return rollback
