"""Schemas of attached jobs; rates in rows/s, durations in ms, times ISO 8601."""

from typing import Any

from ninja import Schema

from controlplane.api.common.derived import below, columns_of
from controlplane.api.common.schemas import ListOut
from controlplane.integrations.attached_list import RunRow
from controlplane.models import AttachedJob, AttachedQuery


class AcceptedOut(Schema):
    """The number of stored events, and their job."""

    job: int
    taken: int


class ProgressOut(Schema):
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
    watermark_ms: int | None
    lags: list[float | None]


class RunOut(
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
    last: ProgressOut | None

    @staticmethod
    def resolve_last(row: RunRow) -> dict[str, Any] | None:
        """Return the newest progress, None before the first."""
        return row.query.last or None


class JobOut(
    columns_of(  # type: ignore[misc]
        AttachedJob,
        "id application name owner spark_version first_seen last_seen ended_at dropped",
        under="job",
    )
):
    """A job with its newest runs; state is running, idle, lost or ended."""

    state: str
    total_queries: int = below("total")
    queries: list[RunOut] = below("runs")


class JobPage(ListOut):
    """One page of jobs."""

    jobs: list[JobOut]
