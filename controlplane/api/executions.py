"""Executions: how far they are, and what each step took."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import AliasChoices, Field

from controlplane.api.common.lists import list_parameters, listed
from controlplane.api.common.schemas import ListOut, below, columns_of, fields_of, shown
from controlplane.api.common.security import cluster_of
from controlplane.models import Execution, Step
from controlplane.proposals.executions.progress import (
    Progress,
    execution_of,
    progress_of,
    running,
    step_seconds,
    steps_listing,
)
from controlplane.proposals.listing import proposal_without_plan

router = Router(tags=["executions"])


class StepOut(
    columns_of(  # type: ignore[misc]
        Step,
        "number direction state first stop applied effective_at tasks moved bytes waited pause_ms"
        " balance_before balance_after p95_ms cap cap_reason published_at acknowledged_at",
        skipped=list[tuple[int, str]],
    )
):
    """One step, a routing version: actions [first, stop) of the proposal, or of its rollback.

    applied: number of actions; skipped: place and code of each that could not be applied. tasks:
    how many move, moved: how many arrived. bytes of state moved; waited: records that waited for
    their task. effective_at: the event time (ms) for which the step waits. pause_ms: the longest
    pause of a task. balance: the imbalance measured. version: null if it changed nothing.
    """

    model_config = shown("number state applied bytes pause_ms seconds")

    version: int | None = below("version.version")
    seconds: float

    resolve_seconds = staticmethod(step_seconds)


_EXECUTION: Any = columns_of(
    Execution,
    "proposal direction done undone not_before cap cap_reason last_step started_at finished_at",
    under="execution",
    rollback_cost=dict[str, Any],
)


class RunningOut(fields_of(Progress, without="execution total", base=_EXECUTION)):  # type: ignore[misc]
    """An execution as lists have it; eta_s is None if it is stopped or has ended.

    eta_least_s, eta_most_s: if no further step is throttled, and if every one is. actions: finished
    ones of total_actions, applied or skipped as they could not be applied.
    """

    state: str = below("execution.proposal.state", is_optional=False)
    # A list of steps has a total of its own.
    total_actions: int = Field(validation_alias=AliasChoices("total_actions", "total"))
    share: float
    waits: str


class ExecutionOut(ListOut, RunningOut):
    """An execution with a page of its steps, the newest first."""

    step_rows: list[StepOut]


_EXAMPLE = {
    "proposal": 12,
    "state": "executing",
    "direction": "forward",
    "actions": 18,
    "applied": 17,
    "skipped": 1,
    "total_actions": 40,
    "bytes": 412_300,
    "total_bytes": 905_000,
    "share": 0.45,
    "steps": 5,
    "step": 5,
    "eta_s": 14.2,
    "eta_least_s": 6.0,
    "eta_most_s": 154.0,
    "waits": "",
    "cap": 6,
    "cap_reason": "one more: p95 latency 640 ms of 10.0 s",
    "rollback_cost": {"actions": 17, "bytes": 412_300, "seconds": 12.0},
}
_SHOWN = {"responses": {200: {"content": {"application/json": {"example": _EXAMPLE}}}}}


@router.get("/{slug}/execution", response=RunningOut | None, openapi_extra=_SHOWN)
def running_execution(request: HttpRequest, slug: str) -> Any:
    """Return the execution that is under way on the cluster, null while there is none."""
    cluster = cluster_of(request)
    return running([cluster.pk]).get(cluster.pk)


@router.get(
    "/{slug}/proposals/{int:pk}/execution", response=ExecutionOut,
    openapi_extra={**_SHOWN, **list_parameters()},
)  # fmt: skip
def get_execution(request: HttpRequest, response: HttpResponse, slug: str, pk: int) -> Any:
    """Return the progress of a proposal's execution; query parameters cursor, limit: its steps."""
    execution = execution_of(proposal_without_plan(cluster_of(request), pk))
    steps = listed(request, response, steps_listing(execution), "step_rows")
    progress = progress_of(execution)
    own = {"share": progress.share, "waits": progress.waits, "total_actions": progress.total}
    return vars(progress) | own | steps
