"""The actions of a proposal with their status in the execution."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from controlplane.models import Execution, Proposal, Query, Step
from controlplane.planning.action_text import ActionText, Names, action_text, names_of
from controlplane.plans.plan import PlannedAction, TaskMove, task_moves
from controlplane.proposals.ledger import rollback_places
from controlplane.topology.applicability import OBSTACLES
from controlplane.wire.routing.actions import ObjectKind

_FORWARD = Execution.Direction.FORWARD


class Status(StrEnum):
    """The status of an action."""

    WAITING = "waiting"
    NOT_APPLIED = "not applied"
    APPLYING = "applying"
    APPLIED = "applied"
    SKIPPED = "skipped"
    REVERTING = "reverting"
    REVERTED = "reverted"


# In these states, actions can still be applied.
OPEN = (
    Proposal.State.READY, Proposal.State.APPROVED, Proposal.State.EXECUTING, Proposal.State.PAUSED,
)  # fmt: skip
# In these states, reviews find out which actions can be applied.
WAITS = (Proposal.State.READY, Proposal.State.APPROVED)


@dataclass(frozen=True)
class ActionStatus:
    """The status of an action, its step, and the code of the reason if it is skipped.

    A waiting action with a code cannot be applied now.
    """

    status: Status
    step: int | None = None
    code: str = ""

    @property
    def obstacle(self) -> str:
        """Return why the action was skipped."""
        return OBSTACLES.get(self.code, self.code)

    def __str__(self) -> str:
        """Return the status as text, such as “applied in step 3”."""
        if self.code:
            return f"{self.status}: {self.obstacle}"
        return str(self.status) if self.step is None else f"{self.status} in step {self.step}"


@dataclass(frozen=True)
class ActionRow:
    """An action with its place in the order (from 0), its text and its status.

    `query`, `stream`: the id of the changed object, None for other kinds of objects; `task`: the
    moved task of a split query, else None.
    """

    place: int
    text: ActionText
    query: int | None
    stream: int | None
    task: int | None
    bytes: int
    status: ActionStatus


def statuses(proposal: Proposal, steps: Iterable[Step]) -> list[ActionStatus]:
    """Return the status of each action by place; `steps` are ordered by number."""
    first = ActionStatus(Status.WAITING if proposal.state in OPEN else Status.NOT_APPLIED)
    result = [first] * len(proposal.actions)
    if proposal.state in WAITS:
        # The last review could not apply these actions.
        for place, code in proposal.obstacles:
            result[place] = ActionStatus(Status.WAITING, code=code)
    rows = list(steps)
    reverted = rollback_places([{"direction": r.direction, "inverses": r.inverses} for r in rows])
    for step in rows:
        done, forward = step.state == Step.State.DONE, step.direction == _FORWARD
        if forward:
            status = Status.APPLIED if done else Status.APPLYING
            for place, code in step.skipped:
                result[place] = ActionStatus(Status.SKIPPED, step.number, code)
        else:
            status = Status.REVERTED if done else Status.REVERTING
        for place, _ in step.inverses:
            result[place if forward else reverted[place]] = ActionStatus(status, step.number)
    return result


def steps_of(proposal: Proposal) -> list[Step]:
    """Return the steps of a proposal's execution by number, without their measures."""
    steps = Step.objects.filter(execution__proposal=proposal).order_by("number")
    return list(steps.only("number", "direction", "state", "skipped", "inverses"))


def counted(action_statuses: Sequence[ActionStatus]) -> list[tuple[str, int]]:
    """Return the number of actions by status, the largest first; skipped ones by code."""
    keys = (
        f"{each.status}: {each.obstacle}" if each.code else str(each.status)
        for each in action_statuses
    )
    return Counter(keys).most_common()


def action_rows(
    proposal: Proposal, action_statuses: Sequence[ActionStatus], places: Sequence[int]
) -> list[ActionRow]:
    """Return the actions at these places."""
    plan = [proposal.plan[place] for place in places]
    names = names_of(proposal.cluster, plan)
    split = _split_queries(plan)
    return [
        _row(place, planned, names, split, action_statuses[place])
        for place, planned in zip(places, plan, strict=True)
    ]


def _split_queries(plan: Iterable[PlannedAction]) -> set[int]:
    moved = {move.query for move in task_moves(plan)}
    split = Query.objects.filter(pk__in=moved, task_count__gt=1)
    return set(split.values_list("pk", flat=True))


def _row(
    place: int, planned: PlannedAction, names: Names, split: set[int], status: ActionStatus
) -> ActionRow:
    subject = planned.action.subjects()[0]
    edge_query = subject.query or None
    return ActionRow(
        place=place,
        text=action_text(planned, names),
        query=subject.id if subject.kind == ObjectKind.QUERY else edge_query,
        stream=subject.id if subject.kind in (ObjectKind.STREAM, ObjectKind.EDGE) else None,
        task=planned.task if isinstance(planned, TaskMove) and planned.query in split else None,
        bytes=planned.bytes,
        status=status,
    )
