"""Executions as people watch them: how far, how long yet, what each step took."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, DurationField, ExpressionWrapper, F, Q, QuerySet, Sum
from django.utils import timezone

from controlplane.errors import NotFound
from controlplane.models import Execution, Proposal, Step
from controlplane.pagination.pages import Page, page_of

FORWARD, BACK = Execution.Direction.FORWARD, Execution.Direction.BACK
# Columns of a proposal that grow with its moves: no list reads them.
HEAVY = ("moves", "path", "before", "after", "drift")


@dataclass(frozen=True)
class Progress:
    """How far an execution is, in the direction that it goes.

    moves: carried out, `left_out` ones among them, of `total`; bytes: of state, as measured, of
    total_bytes, as predicted. step: the number of the step under way, None between two. eta_s:
    seconds until the end at the pace so far, None where it stands still or has ended.
    """

    execution: Execution
    moves: int
    left_out: int
    total: int
    bytes: int
    total_bytes: int
    steps: int
    step: int | None
    eta_s: float | None

    @property
    def proposal(self) -> Proposal:
        """Return the proposal that is carried out."""
        return self.execution.proposal

    @property
    def share(self) -> float:
        """Return the share of the moves that are made, from 0 to 1."""
        return self.moves / self.total if self.total else 1.0

    @property
    def back(self) -> bool:
        """Tell whether it moves back."""
        return self.execution.direction == BACK


def execution_of(proposal: Proposal) -> Execution:
    """Return the execution of a proposal; raises `NotFound` before it has begun."""
    found = Execution.objects.filter(proposal=proposal).first()
    if found is None:
        raise NotFound("execution of proposal", proposal.pk)
    # The caller's row: a heavy one is not read twice.
    found.proposal = proposal
    return found


def progress_of(execution: Execution) -> Progress:
    """Return how far an execution is."""
    return _progress([execution])[execution.cluster_id]


def running(cluster_ids: Iterable[int] | None = None) -> dict[int, Progress]:
    """Return the progress of every execution under way by its cluster, of all without ids."""
    found = Execution.objects.filter(proposal__state__in=Proposal.ACTIVE)
    if cluster_ids is not None:
        found = found.filter(cluster__in=cluster_ids)
    heavy = (f"proposal__{name}" for name in HEAVY)
    return _progress(found.select_related("proposal").defer(*heavy))


def steps_page(execution: Execution, number: int, per_page: int) -> Page[Step]:
    """Return a page of steps, the newest first."""
    found = execution.steps.select_related("version").order_by("-number")
    return page_of(found, number, per_page, list)


def step_seconds(step: Step, now: datetime | None = None) -> float:
    """Return how long a step took, or takes until now."""
    end = step.acknowledged_at or now or timezone.now()
    return (end - step.published_at).total_seconds()


def waiting_for(proposal: Proposal) -> str:
    """Return why an approved proposal or its execution does nothing at the moment, or nothing."""
    if proposal.state == Proposal.State.PAUSED:
        return f"{proposal.decided_by} paused it"
    if proposal.state != Proposal.State.APPROVED:
        return ""
    other = Proposal.objects.filter(cluster=proposal.cluster_id, state__in=Proposal.ACTIVE)
    number = other.values_list("pk", flat=True).first()
    return f"proposal {number} is being carried out" if number is not None else ""


def _progress(executions: Iterable[Execution]) -> dict[int, Progress]:
    rows = list(executions)
    sums = _sums(Step.objects.filter(execution__in=rows))
    return {row.cluster_id: _of(row, sums.get((row.pk, row.direction), {})) for row in rows}


def _sums(steps: QuerySet[Step]) -> dict[tuple[int, str], Mapping[str, Any]]:
    """Return what the steps of each execution and direction come to."""
    lasted = ExpressionWrapper(F("acknowledged_at") - F("published_at"), DurationField())
    done, under_way = Q(state=Step.State.DONE), Q(state=Step.State.PUBLISHED)
    size = F("past") - F("first")
    found = (
        steps.order_by()
        .values("execution", "direction")
        .annotate(
            n=Count("id"),
            sent=Sum("bytes"),
            lasted=Sum(lasted, filter=done),
            moved=Sum(size, filter=done),
            made=Sum("tasks", filter=done),
            moving=Sum(size, filter=under_way),
            number=Sum("number", filter=under_way),
        )
    )
    return {(row["execution"], row["direction"]): row for row in found}


def _of(row: Execution, sums: Mapping[str, Any]) -> Progress:
    back = row.direction == BACK
    predicted = row.proposal.predicted
    ahead = row.undo.get("moves", 0) if back else 0
    total = row.undone + ahead if back else predicted.get("moves", row.done)
    made = (row.undone if back else row.done) - (sums.get("moving") or 0)
    sent = sums.get("sent") or 0
    found = Progress(
        execution=row,
        moves=made,
        # A move is of one task.
        left_out=(sums.get("moved") or 0) - (sums.get("made") or 0),
        total=total,
        bytes=sent,
        total_bytes=sent + row.undo.get("bytes", 0) if back else predicted.get("bytes", 0),
        steps=sums.get("n") or 0,
        step=sums.get("number"),
        eta_s=None,
    )
    moving = (Proposal.State.EXECUTING, Proposal.State.ROLLING_BACK)
    if row.proposal.state not in moving:
        return found
    return Progress(**{**vars(found), "eta_s": _eta(found, sums)})


def _eta(found: Progress, sums: Mapping[str, Any]) -> float:
    """Return the seconds until the end: as many per move as so far, or as predicted."""
    left = max(0, found.total - found.moves)
    moved, lasted = sums.get("moved") or 0, sums.get("lasted") or timedelta()
    plan = found.execution.undo if found.back else found.proposal.predicted
    if moved:
        per_move = lasted.total_seconds() / moved
    else:
        per_move = plan.get("seconds", 0.0) / max(1, plan.get("moves", 0))
    not_before = found.execution.not_before
    wait = (not_before - timezone.now()).total_seconds() if not_before else 0.0
    return round(left * per_move + max(0.0, wait), 1)
