"""Reports of attached jobs: their fields and bounds, as the API receives them."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, FiniteFloat, model_validator
from pydantic.functional_validators import AfterValidator

from controlplane.formats.moments import IN_CALENDAR
from controlplane.wire.redaction import without_password

# What a column of the database holds.
Count = Annotated[int, Field(ge=0, le=2**62)]
Rate = Annotated[FiniteFloat, Field(ge=0)]
# PostgreSQL stores no NUL character, neither as text nor in JSON.
Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
Key = Annotated[Text, Field(max_length=100)]
Time = Annotated[AwareDatetime, IN_CALENDAR]
# A text of the job: an older client sends its secrets. No text becomes longer than its column.
Shown = Annotated[Text, AfterValidator(lambda text: without_password(text)[: len(text)])]


class _Part(BaseModel):
    """A part of a report, which refuses fields that it does not declare."""

    model_config = ConfigDict(extra="forbid")


class JobIn(_Part):
    """A reporting job: Spark's application id and name."""

    application: Text = Field(min_length=1, max_length=200)
    name: Shown = Field(min_length=1, max_length=200)
    spark_version: Text = Field("", max_length=40)


class StateIn(_Part):
    """State of a run, summed over its operators."""

    rows: Count = 0
    updated: Count = 0
    bytes: Count = 0
    dropped: Count = 0
    partitions: Count = 0


class ShuffleIn(_Part):
    """Partitions of the stage that read most records from a shuffle: the largest, the median."""

    partitions: Count
    records: Count
    median_records: Count
    ms: Count
    median_ms: Count


class SourceIn(_Part):
    """A source in a batch; metrics are the source's own, such as Kafka's lag."""

    description: Shown = Field("", max_length=500)
    rows: Count = 0
    input_rate: Rate | None = None
    processed_rate: Rate | None = None
    metrics: dict[Key, FiniteFloat] = Field(default_factory=dict, max_length=50)


class SinkIn(_Part):
    """The sink in a batch; rows is null where it does not count."""

    description: Shown = Field("", max_length=500)
    rows: Count | None = None


class ProgressIn(_Part):
    """One micro-batch; phases are Spark's durationMs."""

    batch: Count
    rows: Count = 0
    input_rate: Rate | None = None
    processed_rate: Rate | None = None
    duration_ms: Count = 0
    phases: dict[Key, Count] = Field(default_factory=dict, max_length=50)
    state: StateIn | None = None
    tasks: ShuffleIn | None = None
    watermark: Time | None = None
    sources: list[SourceIn] = Field(default_factory=list, max_length=50)
    # Not a default value: generators of clients read none of an object.
    sink: SinkIn = Field(default_factory=lambda: SinkIn(description="", rows=None))


class EventIn(_Part):
    """One event of a run; progress comes with kind progress, error with terminated."""

    kind: Literal["started", "progress", "idle", "terminated"]
    id: UUID
    run: UUID
    name: Shown = Field("", max_length=200)
    at: Time
    progress: ProgressIn | None = None
    error: Shown = Field("", max_length=2000)
    error_class: Text = Field("", max_length=200)

    @model_validator(mode="after")
    def check_progress(self) -> "EventIn":
        """Refuse a progress event without its measures, and measures elsewhere."""
        if (self.kind == "progress") != (self.progress is not None):
            raise ValueError("progress comes with events of the kind progress, and only there")
        return self


class ReportIn(_Part):
    """A report of a job: up to 500 events in their order; ended: the job is over."""

    job: JobIn
    events: list[EventIn] = Field(default_factory=list, max_length=500)
    dropped: Count = 0
    ended: bool = False
