"""Progress of executions: finished actions, remaining time, duration of steps."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, DurationField, ExpressionWrapper, F, Q, QuerySet, Sum
from django.utils import timezone

from controlplane.health.liveness.status import computation_waits_for, execution_waits_for
from controlplane.models import Execution, Proposal, Step
from controlplane.pagination.listing import NO_FILTERS, Filters, Listing
from controlplane.pagination.lookup import row_by
from controlplane.plans.proposal_states import APPROVED, ENDED
from controlplane.proposals.executions import step_limits
from controlplane.proposals.review import Review

FORWARD, BACK = Execution.Direction.FORWARD, Execution.Direction.BACK


@dataclass(frozen=True)
class Progress:
    """The progress of an execution, or of its rollback.

    `actions`: the number of finished actions of `total`: `applied` took effect, `skipped` could not
    be applied. `bytes`: measured bytes of state, of predicted `total_bytes`. `step`: the number of
    the step in progress, None between steps. `eta_s`: seconds until the end at the present pace,
    None if the execution is stopped or has ended; `eta_least_s`, `eta_most_s`: its range, if no
    further step is throttled, or every one.
    """

    execution: Execution
    actions: int
    applied: int
    skipped: int
    total: int
    bytes: int
    total_bytes: int
    steps: int
    step: int | None
    eta_s: float | None
    eta_least_s: float | None = None
    eta_most_s: float | None = None

    @property
    def proposal(self) -> Proposal:
        """Return the executed proposal."""
        return self.execution.proposal

    @property
    def share(self) -> float:
        """Return the share of the actions that are finished, from 0 to 1."""
        return self.actions / self.total if self.total else 1.0

    @property
    def applicable(self) -> int:
        """Return the number of actions to apply: as approved, without those skipped since."""
        review = None if self.back else Review.stored(self.proposal.review)
        approved = review.applicable if review is not None else self.total
        return max(self.applied, min(approved, self.total - self.skipped))

    @property
    def waits(self) -> str:
        """Return why the execution waits, "" if it does not wait."""
        return waiting_for(self.proposal, self.execution.waits)

    @property
    def back(self) -> bool:
        """Return whether the execution is being rolled back."""
        return self.execution.direction == BACK


def execution_of(proposal: Proposal) -> Execution:
    """Return the execution of a proposal; raises `NotFound` before its start."""
    execution = row_by(Execution.objects, "execution of proposal", proposal=proposal.pk)
    # The caller's row, so that a large plan is read once.
    execution.proposal = proposal
    return execution


def progress_of(execution: Execution) -> Progress:
    """Return the progress of an execution."""
    return _progress([execution])[execution.cluster_id]


def running(cluster_ids: Iterable[int] | None = None) -> dict[int, Progress]:
    """Return the progress of running executions by cluster; `cluster_ids`: None for all."""
    executions = Execution.objects.filter(proposal__state__in=Proposal.ACTIVE)
    if cluster_ids is not None:
        executions = executions.filter(cluster__in=cluster_ids)
    heavy = (f"proposal__{name}" for name in Proposal.HEAVY)
    return _progress(executions.select_related("proposal").defer(*heavy))


def steps_listing(execution: Execution, filters: Filters = NO_FILTERS) -> Listing[Step, Step]:
    """Return the steps, the newest first."""
    steps = execution.steps.select_related("version")
    return Listing(steps, ("-number", "-pk"), list, filters)


def step_seconds(step: Step, now: datetime | None = None) -> float:
    """Return the duration of a step, until now if it is in progress."""
    end = step.acknowledged_at or now or timezone.now()
    return (end - step.published_at).total_seconds()


def waits_of(proposal: Proposal) -> str:
    """Return why a proposal or its execution waits, "" if it does not; reads the stored reason."""
    if proposal.state in ENDED:
        return ""
    rows = Execution.objects.filter(proposal=proposal.pk).values_list("waits", flat=True)
    return waiting_for(proposal, (rows.first() or "") if proposal.state in APPROVED else "")


def waiting_for(proposal: Proposal, stored: str = "") -> str:
    """Return why a proposal or its execution waits, "" if it does not wait.

    `stored`: the reason of its execution, which a silent process precedes.
    """
    if proposal.state == Proposal.State.PAUSED:
        return f"{proposal.decided_by} paused it"
    if proposal.state == Proposal.State.COMPUTING:
        return computation_waits_for()
    if proposal.state in (*Proposal.ACTIVE, Proposal.State.APPROVED):
        stored = execution_waits_for(proposal.cluster) or stored
    if stored or proposal.state != Proposal.State.APPROVED:
        return stored
    other = Proposal.objects.filter(cluster=proposal.cluster_id, state__in=Proposal.ACTIVE)
    number = other.values_list("pk", flat=True).first()
    return f"proposal {number} is being executed" if number is not None else ""


def _progress(executions: Iterable[Execution]) -> dict[int, Progress]:
    rows = list(executions)
    sums = _sums(Step.objects.filter(execution__in=rows)) if rows else {}
    return {row.cluster_id: _of(row, sums.get((row.pk, row.direction), {})) for row in rows}


def _sums(steps: QuerySet[Step]) -> dict[tuple[int, str], Mapping[str, Any]]:
    """Return sums over the steps of each execution and direction."""
    lasted = ExpressionWrapper(F("acknowledged_at") - F("published_at"), DurationField())
    done, under_way = Q(state=Step.State.DONE), Q(state=Step.State.PUBLISHED)
    size = F("stop") - F("first")
    rows = (
        steps.order_by()
        .values("execution", "direction")
        .annotate(
            n=Count("id"),
            sent=Sum("bytes"),
            lasted=Sum(lasted, filter=done),
            finished=Sum(size, filter=done),
            finished_steps=Count("id", filter=done),
            applied_done=Sum("applied", filter=done),
            running=Sum(size, filter=under_way),
            number=Sum("number", filter=under_way),
        )
    )
    return {(row["execution"], row["direction"]): row for row in rows}


def _of(row: Execution, sums: Mapping[str, Any]) -> Progress:
    back = row.direction == BACK
    predicted, rollback = row.proposal.predicted, row.rollback_cost
    total = row.undone + rollback.get("actions", 0) if back else predicted.get("actions", row.done)
    sent, applied = sums.get("sent") or 0, sums.get("applied_done") or 0
    progress = Progress(
        execution=row,
        actions=(row.undone if back else row.done) - (sums.get("running") or 0),
        applied=applied,
        skipped=(sums.get("finished") or 0) - applied,
        total=total,
        bytes=sent,
        total_bytes=sent + rollback.get("bytes", 0) if back else predicted.get("bytes", 0),
        steps=sums.get("n") or 0,
        step=sums.get("number"),
        eta_s=None,
    )
    active = (Proposal.State.EXECUTING, Proposal.State.ROLLING_BACK)
    if row.proposal.state not in active:
        return progress
    return _with_eta(progress, sums)


def _with_eta(progress: Progress, sums: Mapping[str, Any]) -> Progress:
    """Return the progress with the seconds until the end, by measured or predicted durations."""
    left = max(0, progress.total - progress.actions)
    finished, lasted = sums.get("finished") or 0, sums.get("lasted") or timedelta()
    execution = progress.execution
    cost = execution.rollback_cost if progress.back else progress.proposal.predicted
    if finished:
        seconds, actions, steps = lasted.total_seconds(), finished, sums["finished_steps"]
    else:
        seconds, actions, steps = (cost.get(name, 0) for name in ("seconds", "actions", "steps"))
    not_before = execution.not_before
    wait = max(0.0, (not_before - timezone.now()).total_seconds()) if not_before else 0.0
    eta_s, step_s = left * seconds / max(1, actions) + wait, seconds / max(1, steps)
    least_s, most_s = step_limits.range_s(left, execution.cap, step_s)
    return replace(
        progress,
        eta_s=round(eta_s, 1),
        eta_least_s=round(min(eta_s, least_s + wait), 1),
        eta_most_s=round(max(eta_s, most_s + wait), 1),
    )
