"""Lists of attached jobs and their queries; a job without reports is lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Prefetch
from django.utils import timezone

from controlplane.models import AttachedJob, AttachedProgress, AttachedQuery
from controlplane.pagination.listing import Filters, Listing, text_filter
from controlplane.pagination.lookup import row_by

# A job sends a heartbeat every 30 s, and waits up to a minute between attempts.
LOST_AFTER = timedelta(minutes=3)
# Runs listed under a job; the API's address of the job has all of them.
SHOWN_RUNS = 10
LOST = "lost"
ENDED = "ended"


@dataclass(frozen=True)
class RunRow:
    """A run with its displayed state: its own, or lost; detail is the reason."""

    query: AttachedQuery
    state: str
    detail: str

    @property
    def brief(self) -> str:
        """Return the most informative line of a reason, which is the last of a Python traceback."""
        lines = [line for line in self.detail.splitlines() if line.strip()] or [""]
        return lines[-1] if "Traceback" in self.detail else lines[0]


@dataclass(frozen=True)
class JobRow:
    """A job with its newest runs; state is running, idle, lost or ended; total counts all runs."""

    job: AttachedJob
    state: str
    runs: Sequence[RunRow]
    total: int


@dataclass(frozen=True)
class JobFilters(Filters):
    """Filters of the list."""

    text: str = text_filter("q")


def jobs_listing(filters: JobFilters) -> Listing[AttachedJob, JobRow]:
    """Return the jobs, most recently reported first."""
    runs = AttachedQuery.objects.order_by("-started_at", "-pk")[:SHOWN_RUNS]
    jobs = AttachedJob.objects.filter(name__icontains=filters.text).annotate(total=Count("queries"))
    newest = jobs.prefetch_related(Prefetch("queries", queryset=runs, to_attr="newest"))
    return Listing(newest, ("-last_seen", "-pk"), _job_rows, filters)


def _job_rows(jobs: Sequence[Any]) -> list[JobRow]:
    now = timezone.now()
    rows = []
    for job in jobs:
        runs = [run_row(query, job, now) for query in job.newest]
        rows.append(JobRow(job, _job_state(job, runs, now), runs, job.total))
    return rows


def job_by_id(pk: int) -> AttachedJob:
    """Return a job; raises `NotFound`."""
    return row_by(AttachedJob.objects, "attached job", pk=pk)


def run_by_id(pk: int) -> RunRow:
    """Return a run with its job; raises `NotFound`."""
    query = row_by(AttachedQuery.objects.select_related("job"), "attached query", pk=pk)
    return run_row(query, query.job, timezone.now())


def progress_of(query: AttachedQuery, start: datetime, end: datetime) -> list[dict[str, Any]]:
    """Return the progress with start <= t <= end, oldest first."""
    rows = AttachedProgress.objects.filter(query=query, t__gte=start, t__lte=end).order_by("t")
    return list(rows.values_list("values", flat=True))


def run_row(query: AttachedQuery, job: AttachedJob, now: datetime) -> RunRow:
    """Return the row of a run at a moment."""
    if not query.over and silent(job, now):
        return RunRow(query, LOST, "Nothing is heard of its job")
    return RunRow(query, query.state, query.detail)


def silent(job: AttachedJob, now: datetime) -> bool:
    """Return True if a job has not ended and its last report is too old."""
    return job.ended_at is None and now - job.last_seen > LOST_AFTER


def _job_state(job: AttachedJob, runs: Sequence[RunRow], now: datetime) -> str:
    if job.ended_at is not None:
        return ENDED
    if silent(job, now):
        return LOST
    running = any(row.state == AttachedQuery.State.RUNNING for row in runs)
    return str(AttachedQuery.State.RUNNING if running else AttachedQuery.State.IDLE)
