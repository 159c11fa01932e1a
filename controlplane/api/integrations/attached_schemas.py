"""Schemas of attached jobs; rates in rows/s, durations in ms, times ISO 8601."""

from typing import Annotated, Any, Literal
from uuid import UUID

from ninja import Schema
from pydantic import AwareDatetime, Field, FiniteFloat, model_validator

from controlplane.api.common.derived import below, columns_of
from controlplane.api.common.schemas import ListOut
from controlplane.integrations.attached_jobs import Event, JobSpec, Report
from controlplane.integrations.attached_list import RunRow
from controlplane.models import AttachedJob, AttachedQuery

# What a column of the database holds.
Count = Annotated[int, Field(ge=0, le=2**62)]
Rate = Annotated[FiniteFloat, Field(ge=0)]
# PostgreSQL stores no NUL character, neither as text nor in JSON.
Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
Key = Annotated[Text, Field(max_length=100)]


class JobIn(Schema):
    """A reporting job: Spark's application id and name."""

    application: Text = Field(min_length=1, max_length=200)
    name: Text = Field(min_length=1, max_length=200)
    spark_version: Text = Field("", max_length=40)


class StateIn(Schema):
    """State of a run, summed over its operators."""

    rows: Count = 0
    updated: Count = 0
    bytes: Count = 0
    dropped: Count = 0


class SourceIn(Schema):
    """A source in a batch; metrics are the source's own, such as Kafka's lag."""

    description: Text = Field("", max_length=500)
    rows: Count = 0
    input_rate: Rate | None = None
    processed_rate: Rate | None = None
    metrics: dict[Key, FiniteFloat] = Field(default_factory=dict, max_length=50)


class SinkIn(Schema):
    """The sink in a batch; rows is null where it does not count."""

    description: Text = Field("", max_length=500)
    rows: Count | None = None


class ProgressIn(Schema):
    """One micro-batch; phases are Spark's durationMs."""

    batch: Count
    rows: Count = 0
    input_rate: Rate | None = None
    processed_rate: Rate | None = None
    duration_ms: Count = 0
    phases: dict[Key, Count] = Field(default_factory=dict, max_length=50)
    state: StateIn | None = None
    watermark: AwareDatetime | None = None
    sources: list[SourceIn] = Field(default_factory=list, max_length=50)
    sink: SinkIn = SinkIn(description="", rows=None)


class EventIn(Schema):
    """One event of a run; progress comes with kind progress, error with terminated."""

    kind: Literal["started", "progress", "idle", "terminated"]
    id: UUID
    run: UUID
    name: Text = Field("", max_length=200)
    at: AwareDatetime
    progress: ProgressIn | None = None
    error: Text = Field("", max_length=2000)
    error_class: Text = Field("", max_length=200)

    @model_validator(mode="after")
    def check_progress(self) -> "EventIn":
        """Refuse a progress event without its measures, and measures elsewhere."""
        if (self.kind == "progress") != (self.progress is not None):
            raise ValueError("progress comes with events of the kind progress, and only there")
        return self

    def value(self) -> Event:
        """Return the event as the service takes it."""
        values = self.model_dump(exclude={"id", "run", "error_class"})
        return Event(query_id=self.id, run_id=self.run, **values)


class ReportIn(Schema):
    """A report of a job: up to 500 events in their order; ended: the job is over."""

    job: JobIn
    events: list[EventIn] = Field(default_factory=list, max_length=500)
    dropped: Count = 0
    ended: bool = False

    def report(self) -> Report:
        """Return the body as the service takes it."""
        return Report(
            job=JobSpec(**self.job.model_dump()),
            events=[event.value() for event in self.events],
            dropped=self.dropped,
            ended=self.ended,
        )


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
