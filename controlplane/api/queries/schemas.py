"""Schemas of queries and their windows."""

import json
from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt

from controlplane.api.common.examples import QUERY_EXAMPLES
from controlplane.api.common.schemas import ListOut, PlaceOut, ReasonIn
from controlplane.api.queries.edge_schemas import DropOut
from controlplane.catalog.query_rows import QueryRow
from controlplane.models.query import DEFAULT_RETENTION_S, DEFAULT_RETENTION_WINDOWS
from controlplane.wire.query import DEFAULT_LATENESS_S, QueryText


class TextIn(BaseModel):
    """What a query computes, as SQL text; see docs/queries.md.

    where: a predicate, empty for all records. columns: expressions by name, usable in the others.
    key: columns to group by; the column `stream` is the record's stream. aggregates: by the name
    of their result. Windows begin every slide_s seconds (null: one behind the other). Records that
    are older than the newest before them by more than lateness_s are late and left out.

    A join pairs the records of the query's streams with those of the streams that right names,
    where both are in the same window and each pair in on, [of the left, of the right], is equal.
    Its other parts name columns with their side: a.amount is of the left, b.amount of the right.
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [example["text"] for example in QUERY_EXAMPLES.values()]},
    )

    aggregates: dict[str, str]
    window_s: StrictFloat = 60.0
    slide_s: StrictFloat | None = None
    lateness_s: StrictFloat = DEFAULT_LATENESS_S
    where: str = ""
    columns: dict[str, str] = Field(default_factory=dict)
    key: list[str] = Field(default_factory=list)
    right: list[str] = Field(default_factory=list)
    on: list[list[str]] = Field(default_factory=list)

    def value(self) -> QueryText:
        """Return the text as `QueryText`; its right side is not resolved yet."""
        return QueryText(**self.model_dump(exclude={"right"}))


class QueryIn(BaseModel):
    """A query to submit: streams by name (of a join, those of its left), and what it computes.

    It is split by its key over so many tasks. key_grouping (hash, two_choices): how keys find their
    task; a query that is submitted with one has an aggregator node, and its key grouping can be
    changed. Its windows are kept for retention_s seconds of event time, retention_windows of them
    at most.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    streams: list[str]
    text: TextIn
    ends_at: datetime | None = None
    tasks: StrictInt = 1
    key_grouping: str = ""
    retention_s: StrictInt = DEFAULT_RETENTION_S
    retention_windows: StrictInt = DEFAULT_RETENTION_WINDOWS


class RetentionIn(ReasonIn):
    """How long (s of event time) and how many windows are kept; null leaves a value as it is."""

    retention_s: StrictInt | None = None
    retention_windows: StrictInt | None = None


class QueryCheckIn(QueryIn):
    """A query to check; without a name, all but the name is checked."""

    name: str = ""
    streams: list[str] = Field(default_factory=list)


class ColumnOut(Schema):
    """A column of the results; kind is int, float, bool, text, time or what a list holds."""

    name: str
    kind: str
    role: str


class CheckOut(Schema):
    """Faults by field with their places, or the columns that the results would have.

    usable: the columns that the text may use besides those it names itself, with their kinds; of a
    join those of both sides.
    """

    valid: bool
    fields: dict[str, list[str]]
    places: dict[str, PlaceOut]
    columns: list[ColumnOut]
    usable: dict[str, str]


class QueriesIn(BaseModel):
    """Up to 10,000 queries to submit together: all or none."""

    queries: list[QueryIn]


class NamesIn(ReasonIn):
    """Names of live queries to end together: all or none."""

    names: list[str]


class QueryOut(BaseModel):
    """A query; node is the index of the node its first task runs on.

    text is what was submitted, defaults left out; window_s repeats the length of its windows in
    seconds. Of a join, streams are those of its left side and text.right names the others. Of a
    query that is split over several tasks, task_ranges has the node of each range of tasks:
    [node, first, stop]; key_grouping is "" for the hash; aggregator is its aggregator node, null
    without one. incarnation grows with each restart without state. drops are its drop rules. fault
    has the reason why the data plane could not compute the query: why, stage of the engine, node
    (index), and sample, some rows of the input; empty for none.
    """

    id: int
    name: str
    state: str
    detail: str
    fault: dict[str, Any]
    streams: list[str]
    window_s: float
    text: dict[str, Any]
    tasks: int
    node: int | None
    task_ranges: list[tuple[int, int, int]]
    key_grouping: str
    aggregator: int | None
    drops: list[DropOut]
    incarnation: int
    retention_s: int
    retention_windows: int
    submitted_by: str
    submitted_at: datetime
    placed_at: datetime | None
    ends_at: datetime | None
    ended_at: datetime | None

    @staticmethod
    def of(row: QueryRow) -> "QueryOut":
        """Return the body of a row."""
        query = row.query
        return QueryOut(
            id=query.pk,
            name=query.name,
            state=query.state,
            detail=query.detail,
            fault=query.fault,
            streams=list(row.left),
            window_s=query.window_s,
            text=_text(row),
            tasks=query.task_count,
            node=None if row.node is None else row.node.index,
            task_ranges=list(row.task_ranges),
            key_grouping=query.key_grouping,
            aggregator=None if query.aggregator is None else query.aggregator.index,
            drops=[DropOut.of(drop) for drop in row.drops],
            incarnation=query.incarnation,
            retention_s=query.retention_s,
            retention_windows=query.retention_windows,
            submitted_by=query.submitted_by,
            submitted_at=query.submitted_at,
            placed_at=query.placed_at,
            ends_at=query.ends_at,
            ended_at=query.ended_at,
        )


def _text(row: QueryRow) -> dict[str, Any]:
    """Return the text as it was submitted: streams by name."""
    text: dict[str, Any] = json.loads(row.query.text)
    return text | {"right": list(row.right)} if row.right else text


class SubmittedOut(Schema):
    """The queries of a bulk request."""

    count: int
    names: list[str]


class WindowOut(Schema):
    """One window of one key of a query: key and aggregates by name.

    Moments are ISO 8601, the key column `stream` holds the stream's name; decimals, infinities and
    NaN are texts. batch is the newest micro-batch that changed the window. state is open (records
    may change it), final (complete, since final_at) or incomplete (nothing changes it any more, but
    its query ended before all its records had come, or it was open for too long). errors has for
    an aggregate without a value the reason.
    """

    window_start: datetime
    key: dict[str, Any]
    values: dict[str, Any]
    batch: int
    state: str
    final_at: datetime | None = None
    errors: dict[str, str] = {}


class WindowPageOut(Schema):
    """A page of a query's windows; next is the cursor of the next page, null for the last."""

    windows: list[WindowOut]
    next: str | None


class QueryPage(ListOut):
    """One page of queries."""

    queries: list[QueryOut]
