"""The steps of the tour; each is done by what has happened on the cluster, or by an opened page."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from django.db.models import Q, QuerySet

from controlplane.models import Alert, AuditEntry, Execution, Proposal, Scenario, TourProgress


class StepCode(StrEnum):
    """The steps, in their order."""

    DISTURB = "disturb"
    ALERT = "alert"
    EXPLAIN = "explain"
    READ = "read"
    APPROVE = "approve"
    WATCH = "watch"
    PROOF = "proof"


@dataclass(frozen=True)
class TourStep:
    """A step: what to do, why, and whether it is done; `proposal`: the one to open, if any."""

    code: StepCode
    title: str
    text: str
    is_done: bool
    proposal: int | None = None


@dataclass(frozen=True)
class Tour:
    """The steps of a user's tour."""

    steps: tuple[TourStep, ...]

    @property
    def current(self) -> TourStep | None:
        """Return the first step that is not done, None at the end."""
        return next((step for step in self.steps if not step.is_done), None)

    @property
    def number(self) -> int:
        """Return the number of the current step, from 1; the number of all steps at the end."""
        step = self.current
        return len(self.steps) if step is None else self.steps.index(step) + 1


@dataclass(frozen=True)
class Happened:
    """What has happened on the cluster since the tour started; ids of proposals, None for none.

    `has_alert`: an alert fired since, or fired already; `ready`: the proposal that waits.
    """

    is_disturbed: bool
    has_alert: bool
    ready: int | None
    approved: int | None
    executed: int | None


def happened_since(progress: TourProgress) -> Happened:
    """Return what has happened on the cluster since the tour started."""
    cluster, start = progress.cluster, progress.started_at
    own = {"cluster": cluster}
    approvals = AuditEntry.objects.filter(**own, action="proposal.approve", at__gte=start)
    waiting = Proposal.objects.filter(**own, state=Proposal.State.READY).order_by("-pk")
    # What fires when the tour starts is what it is about.
    fires = Q(fired_at__gte=start) | Q(state=Alert.State.FIRING)
    has_alert = Alert.objects.filter(fires, **own).exists()
    executions = Execution.objects.filter(**own, started_at__gte=start).order_by("-pk")
    finished = executions.filter(finished_at__isnull=False, proposal__state=Proposal.State.DONE)
    return Happened(
        is_disturbed=Scenario.objects.filter(**own, started_at__gte=start).exists(),
        has_alert=has_alert,
        ready=_first(waiting, "pk"),
        approved=_first(executions, "proposal_id") if approvals.exists() else None,
        executed=_first(finished, "proposal_id"),
    )


def _first(rows: QuerySet[Any], column: str) -> int | None:
    return rows.values_list(column, flat=True).first()


def steps_of(progress: TourProgress, happened: Happened) -> tuple[TourStep, ...]:
    """Return the steps of a tour; a step is done if a later one is."""
    approved = happened.approved or happened.executed
    done = {
        StepCode.DISTURB: happened.is_disturbed,
        StepCode.ALERT: happened.has_alert,
        StepCode.EXPLAIN: progress.explained_at is not None,
        StepCode.READ: progress.read_at is not None,
        StepCode.APPROVE: approved is not None,
        StepCode.WATCH: happened.executed is not None,
        StepCode.PROOF: progress.proved_at is not None,
    }
    proposals = {
        StepCode.READ: happened.ready,
        StepCode.APPROVE: happened.ready,
        StepCode.WATCH: approved,
        StepCode.PROOF: happened.executed,
    }
    last = max((place for place, code in enumerate(StepCode) if done[code]), default=-1)
    return tuple(
        TourStep(code, *_TEXTS[code], is_done=place <= last, proposal=proposals.get(code))
        for place, code in enumerate(StepCode)
    )


_TEXTS: Final[Mapping[StepCode, tuple[str, str]]] = {
    StepCode.DISTURB: (
        "Disturb the cluster",
        "Start the scenario uneven queries: half of the queries gather on one node.",
    ),
    StepCode.ALERT: (
        "Wait for the alert",
        "Weir raises an alert when a limit of the policy is exceeded for its hold time.",
    ),
    StepCode.EXPLAIN: (
        "Open the explanation",
        "It names the exceeded limit, what contributes most, and which plans would end it.",
    ),
    StepCode.READ: (
        "Read a proposal",
        "Request a plan, and open its proposal when it is computed: what moves, what it costs,"
        " and how the load is afterwards.",
    ),
    StepCode.APPROVE: (
        "Approve the proposal",
        "Exactly the moves that the page shows are executed; nothing else can start.",
    ),
    StepCode.WATCH: (
        "Watch the execution",
        "Each step moves some queries with their state. You can pause it, stop it or roll it back.",
    ),
    StepCode.PROOF: (
        "See the effect",
        "The page of the proposal compares what was approved with what was measured.",
    ),
}
