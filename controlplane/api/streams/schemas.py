"""Schemas of streams, their record schemas and dead letters."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, create_model

from controlplane.api.common.schemas import (
    RequestBody,
    columns_of,
    list_of,
    listed_columns_of,
    response_of,
    shown,
)
from controlplane.api.queries.schemas import DropOut
from controlplane.catalog.characteristics import characteristic_fields
from controlplane.catalog.columns.streams import COLUMNS
from controlplane.catalog.streams import StreamListRow
from controlplane.models import Stream
from controlplane.pagination.columns import values_of
from controlplane.pagination.cursors import MAX_CURSOR
from controlplane.processes.runtime.request_bounds import MAX_ROWS
from controlplane.topology.topics.declaration import source_body
from controlplane.wire.schema import (
    DEFAULT_IDLE_AFTER_S,
    DEFAULT_MAX_FUTURE_S,
    DEFAULT_WATERMARK_DELAY_S,
    MAX_COLUMNS,
)

Seconds = StrictFloat | StrictInt


class ColumnBody(BaseModel):
    """A column; type as in docs/producers.md: int64, string, decimal(12, 2), list<date>, …"""

    model_config = ConfigDict(extra="forbid", from_attributes=True)

    name: str
    type: str
    nullable: StrictBool = True


class SchemaBody(BaseModel):
    """The schema of a stream.

    event_time: the timestamp column with the event time of a record; empty: when it is appended.
    max_future_s: records that are dated further ahead of now become dead letters.
    """

    model_config = ConfigDict(extra="forbid")

    columns: list[ColumnBody] = Field(min_length=1, max_length=MAX_COLUMNS)
    event_time: str = ""
    watermark_delay_s: Seconds = DEFAULT_WATERMARK_DELAY_S
    max_future_s: Seconds = DEFAULT_MAX_FUTURE_S
    idle_after_s: Seconds = DEFAULT_IDLE_AFTER_S


class SchemaIn(SchemaBody):
    """The requested schema of a stream, and the reason."""

    reason: str = Field("", max_length=300)


class SchemaPatch(RequestBody):
    """A change of a schema: columns to add, alter or remove by name, and settings."""

    columns: list[ColumnBody] = Field(default_factory=list, max_length=MAX_COLUMNS)
    remove: list[str] = Field(default_factory=list, max_length=MAX_COLUMNS)
    event_time: str | None = None
    watermark_delay_s: Seconds | None = None
    max_future_s: Seconds | None = None
    idle_after_s: Seconds | None = None
    reason: str = Field("", max_length=300)


class SchemaChangeOut(BaseModel):
    """One change of a schema; reason is empty if it is allowed.

    queries: the first live queries that it would break, query_count: how many there are,
    query_reason: the error of the first of them. sentence: all of it for people.
    """

    column: str
    action: str
    detail: str
    reason: str
    query_reason: str
    queries: list[str]
    query_count: int
    sentence: str


class PreviewOut(BaseModel):
    """The effect of a schema change; allowed is false if one change is rejected."""

    allowed: bool
    changes: list[SchemaChangeOut]


class DeadLetterOut(BaseModel):
    """A dead letter; record is its JSON text, "" if it cannot be read.

    position and index are its place in the log; of a record that was refused with a
    request, position names the request, and index is its place in the body.
    """

    model_config = shown("stream reason index message")

    id: str
    stream: str
    position: str
    index: int
    reason: str
    message: str
    records: int
    record: str


DeadLetterPageOut = list_of("DeadLetterPageOut", dead_letters=DeadLetterOut)


class ChoiceIn(RequestBody):
    """A selection of dead letters: by id, or by stream and reason; or all: those of the cluster."""

    ids: list[str] | None = Field(None, min_length=1, max_length=1000)
    stream: str | None = Field(None, min_length=1, max_length=100)
    reason_code: str | None = Field(
        None, min_length=1, max_length=20, description="body, future, no_time, schema, …"
    )
    all: bool = False


class ReplayIn(ChoiceIn):
    """The dead letters to append again.

    zone: the IANA time zone of times that name none. after: `next` of the previous response.
    """

    zone: str = Field("", max_length=60)
    after: str = Field("", max_length=MAX_CURSOR)


class DeleteIn(ChoiceIn):
    """The dead letters to delete, and the reason."""

    reason: str = Field("", max_length=300)


class DeletedOut(BaseModel):
    """The number of deleted dead letters."""

    deleted: int


_CHARACTERISTICS: Any = create_model("_Characteristics", **characteristic_fields())


class CharacteristicsBody(_CHARACTERISTICS):  # type: ignore[misc]  # the fields are the declared ones
    """What is known of a stream's rate from outside; null: not known."""

    model_config = ConfigDict(extra="forbid")

    def given(self) -> dict[str, Any]:
        """Return the known characteristics."""
        known: dict[str, Any] = self.model_dump(exclude_none=True)
        return known


class _Source(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SourceBody(source_body(_Source)):  # type: ignore[misc]
    """A topic, files or a generator that is read in place: docs/topics.md, docs/sources.md.

    secrets: names of secrets of the site.
    """


class StreamIn(RequestBody):
    """A stream as declared; declared_rate in records/s.

    schema is as GET …/schema answers it; a new stream needs one, another keeps its own without it.
    characteristics are kept where they are left out. source: where its records come from; without
    one, a new stream is in the log of the cluster.
    """

    name: str
    title: str = ""
    data_schema: SchemaBody | None = Field(None, alias="schema")
    declared_rate: float | None = None
    meta: dict[str, Any] = Field(default_factory=dict)
    characteristics: CharacteristicsBody | None = None
    source: SourceBody | None = None


class StreamsIn(RequestBody):
    """Streams to register together."""

    streams: list[StreamIn] = Field(max_length=MAX_ROWS)


class StreamOut(
    columns_of(  # type: ignore[misc]
        Stream,
        "late_at",
        base=listed_columns_of(Stream, COLUMNS, base=BaseModel),
        meta=dict[str, Any],
        characteristics=dict[str, Any],
    )
):
    """A stream; id is its id on the wire, drops are those of all its edges.

    event_time names a column, "" for the time of arrival. dead_letters: records that ever became
    dead letters, by reason; null while that is not known. late_at: the last of its late records.
    source: where its records come from; null if they are in the log of the cluster.
    """

    columns: list[ColumnBody]
    event_time: str
    drops: list[DropOut]
    dead_letters: dict[str, int] | None
    source: SourceBody | None

    @classmethod
    def of(cls, row: StreamListRow) -> Self:
        """Return the body of a row."""
        schema = row.schema
        columns = schema.columns if schema else ()
        return response_of(
            cls,
            row.stream,
            **values_of(COLUMNS, row),
            columns=[ColumnBody.model_validate(column) for column in columns],
            event_time=schema.event_time if schema else "",
            drops=[DropOut.of(drop) for drop in row.drops],
            dead_letters=None if row.dead is None else dict(row.dead),
            source=SourceBody(**row.stream.source) if row.stream.source else None,
        )


StreamPage = list_of("StreamPage", streams=StreamOut)
