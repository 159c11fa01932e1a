"""Endpoints of attached jobs; bodies of at most 1 MiB.

Rates are in rows/s, durations in ms, times ISO 8601.
"""

from datetime import timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router, Schema, Status
from ninja.errors import HttpError

from controlplane.access.roles import OPERATOR, VIEWER, Actor, require_viewer
from controlplane.api.common.lists import list_parameters, listed
from controlplane.api.common.schemas import (
    Time,
    below,
    columns_of,
    dataclass_schema,
    list_of,
    shown,
)
from controlplane.api.common.security import caller, open_to
from controlplane.formats.moments import shifted
from controlplane.integrations import attached_jobs
from controlplane.integrations.attached_advice import Advice, advice_of
from controlplane.integrations.attached_list import (
    JobFilters,
    job_by_id,
    jobs_listing,
    progress_of,
    run_by_id,
)
from controlplane.integrations.attached_reports import ReportIn, ShuffleIn
from controlplane.models import AttachedJob, AttachedQuery


class AcceptedOut(Schema):
    """The number of stored events, and their job."""

    job: int
    taken: int


class AttachedProgressOut(Schema):
    """A batch, or the merged batches of a minute; t and watermark_ms in ms since the epoch."""

    t: int
    batch: int
    rows: int
    input: float | None
    processed: float | None
    duration_ms: int
    phases: dict[str, int]
    state_rows: int | None
    state_bytes: int | None
    state_dropped: int | None
    state_updated: int | None = None
    state_partitions: int | None = None
    watermark_ms: int | None
    lags: list[float | None]
    tasks: ShuffleIn | None = None


class AttachedRunOut(
    columns_of(  # type: ignore[misc]
        AttachedQuery,
        "id query_id run_id name started_at ended_at",
        under="query",
        sources=list[dict[str, Any]],
        sink=dict[str, Any],
    )
):
    """A Spark run: state is running, idle, terminated, failed or lost, detail the reason."""

    job: int = below("query.job_id")
    state: str
    detail: str
    last: AttachedProgressOut | None

    resolve_last = staticmethod(lambda row: row.query.last or None)


class AttachedRunDetailOut(AttachedRunOut):
    """A Spark run with advice from its newest batches."""

    advice: list[dataclass_schema(Advice)]  # type: ignore[valid-type]

    resolve_advice = staticmethod(lambda row: advice_of(row.query))


class JobOut(
    columns_of(  # type: ignore[misc]
        AttachedJob,
        "id application name owner spark_version first_seen last_seen ended_at dropped",
        under="job",
    )
):
    """A job with its newest runs; state is running, idle, lost or ended."""

    model_config = shown("id name state owner last_seen")

    state: str
    total_queries: int = below("total")
    queries: list[AttachedRunOut] = below("runs")


JobPage = list_of("JobPage", jobs=JobOut)


router = Router(tags=["attached jobs"], auth=open_to(VIEWER))
# The client sends at most a quarter of it.
MAX_BODY_BYTES = 1024 * 1024
DEFAULT_SPAN = timedelta(minutes=15)


def _reporters(actor: Actor, request: HttpRequest) -> None:
    """Admit viewers, with a body that is not too large."""
    require_viewer(actor)
    if _size(request) > MAX_BODY_BYTES:
        text = f"A report has at most {MAX_BODY_BYTES} bytes: send fewer events at a time"
        raise HttpError(413, text)


@router.post("/events", response={202: AcceptedOut}, auth=open_to(_reporters))
def report_events(request: HttpRequest, body: ReportIn) -> Any:
    """Store a report of a job about its streaming queries; idempotent.

    Each (run, batch) is stored once. A token of the role viewer is enough: it writes jobs of its
    own user only. A report without events is a sign of life.
    """
    job = attached_jobs.report(caller(request), body)
    return Status(202, {"job": job.pk, "taken": len(body.events)})


@router.get("/jobs", response=JobPage, openapi_extra=list_parameters(JobFilters))
def list_jobs(request: HttpRequest, response: HttpResponse) -> Any:
    """List jobs with the newest runs of each; query parameters q, cursor, limit (up to 1000)."""
    return listed(request, response, jobs_listing(JobFilters.of(request.GET)), "jobs")


@router.delete("/jobs/{int:pk}", response={204: None}, auth=open_to(OPERATOR))
def remove_job(request: HttpRequest, pk: int) -> Any:
    """Delete a job with its rows; its next report creates it again."""
    attached_jobs.remove(caller(request), job_by_id(pk))
    return Status(204, None)


@router.get("/queries/{int:pk}", response=AttachedRunDetailOut)
def get_query(request: HttpRequest, pk: int) -> Any:
    """Return one Spark run with its newest progress, and advice."""
    return run_by_id(pk)


@router.get("/queries/{int:pk}/progress", response=list[AttachedProgressOut])
def list_progress(
    request: HttpRequest, pk: int, start: Time | None = None, end: Time | None = None
) -> Any:
    """Return the progress of a run, oldest first; by default of the last fifteen minutes.

    Every batch is kept for 15 minutes, one row a minute for 24 hours.
    """
    until = end or timezone.now()
    return progress_of(run_by_id(pk).query, start or shifted(until, -DEFAULT_SPAN), until)


def _size(request: HttpRequest) -> int:
    declared = str(request.META.get("CONTENT_LENGTH") or "")
    # A body sent in chunks declares nothing: it is at hand by now and measured.
    return int(declared) if declared.isdecimal() else len(request.body)
