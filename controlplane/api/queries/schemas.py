"""Schemas of queries with their windows, drop rules, key groupings and aggregator nodes."""

import json
from datetime import datetime
from typing import Any, Final, Self

from ninja import Schema
from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, create_model

from algorithms.partitioning.catalog import GroupingInfo
from controlplane.api.common.examples import QUERY_EXAMPLES
from controlplane.api.common.parameters import ParameterOut
from controlplane.api.common.schemas import (
    PlaceOut,
    ReasonIn,
    RequestBody,
    columns_of,
    fields_of,
    list_of,
    listed_columns_of,
    response_of,
    shown,
)
from controlplane.catalog.columns.queries import COLUMNS
from controlplane.catalog.drop_rules import moment_of
from controlplane.catalog.queries import QueryListRow
from controlplane.catalog.query_models import query_fields, response_fields, text_fields
from controlplane.models import Drop, Query
from controlplane.pagination.columns import values_of
from controlplane.processes.runtime.request_bounds import MAX_ROWS
from controlplane.queries.spec import ParameterValue, submitted_values


class DropStepOut(BaseModel):
    """The dropped share from an event time on (null: always)."""

    since: datetime | None
    share: float


class DropOut(columns_of(Drop, "since_version set_by set_at reason dropped per_s", base=BaseModel)):  # type: ignore[misc]
    """A drop rule; query is null for the input of the stream.

    share is the last step's: 0 for a drop of windows that is being lifted. window_s is null where
    records are dropped by chance. dropped counts records since the drop was set, per_s follows how
    many a second they are.
    """

    model_config = shown("query share dropped set_by reason")

    stream: str
    query: str | None
    share: float
    window_s: float | None
    slide_s: float | None
    batch: int
    steps: list[DropStepOut]

    @classmethod
    def of(cls, drop: Drop) -> Self:
        """Return the body of a row."""
        rule = drop.value
        return response_of(
            cls,
            drop,
            stream=drop.stream.name,
            query=None if drop.query is None else drop.query.name,
            share=rule.steps[-1][1],
            window_s=rule.window_ms / 1000 or None,
            slide_s=rule.slide_ms / 1000 or None,
            batch=rule.batch,
            steps=[DropStepOut(since=moment_of(since), share=share) for since, share in rule.steps],
        )


class DropIn(ReasonIn):
    """A requested drop rule: a share above 0 and up to 1, of random records.

    query: the running query of the split edge; without one, the input edge. With window_s, windows
    of this length that begin every slide_s are dropped whole, batch neighbours together; on a split
    edge they are the query's own.
    """

    share: StrictFloat
    query: str | None = Field(None, min_length=1)
    window_s: StrictFloat | None = None
    slide_s: StrictFloat | None = None
    batch: StrictInt = 1


class KeyGroupingIn(ReasonIn):
    """The requested key grouping of a query, and its parameters by name; others have defaults."""

    key_grouping: str
    key_grouping_parameters: dict[str, ParameterValue] = Field(default_factory=dict)


class KeyGroupingOut(fields_of(GroupingInfo, without="needs_times stateful path")):  # type: ignore[misc]
    """A key grouping: its title, its effect, and its parameters.

    by_key: the task depends on the key alone; only this grouping is possible for joins.
    """

    parameters: list[ParameterOut]

    resolve_parameters = staticmethod(lambda info: info.parameters.fields())


class TasksIn(ReasonIn):
    """The requested number of tasks; new ones start where the query has fewest by capacity."""

    tasks: StrictInt


class AggregatorsIn(ReasonIn):
    """The requested number of aggregator nodes, each with its share of the keys."""

    count: StrictInt


class AggregatorIn(ReasonIn):
    """The index of the only aggregator node; null: the least loaded other node."""

    node: StrictInt | None


class _Request(BaseModel):
    """A part of a request: no unknown names, no value of another type than declared."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TextIn(create_model("_Text", __base__=_Request, **text_fields(checked=False))):  # type: ignore[misc]
    """What a query computes, as SQL text; see docs/queries.md.

    A join pairs the records of the query's streams with those of the streams that right names,
    where both are in the same window and each pair in on, [of the left, of the right], is equal.
    Its other parts name columns with their side: a.amount is of the left, b.amount of the right.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [example["text"] for example in QUERY_EXAMPLES.values()]},
    )


class QueryIn(create_model("_Query", __base__=_Request, **query_fields(TextIn, checked=False))):  # type: ignore[misc]
    """A query to submit.

    A query that is submitted with a key_grouping has an aggregator node, and its key grouping can
    be changed.
    """


class RetentionIn(ReasonIn):
    """How long (s of event time) and how many windows are kept; null leaves a value as it is."""

    retention_s: StrictInt | None = None
    retention_windows: StrictInt | None = None


class SheddingIn(ReasonIn):
    """The weight of a record and the least part that load shedding keeps; null: no change."""

    shedding_weight: float | None = None
    shedding_floor: float | None = None


class QueryCheckIn(QueryIn):
    """A query to check; without a name, all but the name is checked."""

    name: str = ""
    streams: list[str] = Field(default_factory=list)


class ColumnOut(BaseModel):
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


class QueriesIn(RequestBody):
    """Up to 10,000 queries to submit together: all or none."""

    queries: list[QueryIn] = Field(max_length=MAX_ROWS)


class NamesIn(ReasonIn):
    """Names of live queries to end together: all or none."""

    names: list[str] = Field(max_length=MAX_ROWS)


_SUBMITTED: Final[Any] = create_model("_Stored", __base__=BaseModel, **response_fields())


class QueryOut(listed_columns_of(Query, COLUMNS, base=_SUBMITTED)):  # type: ignore[misc]
    """A query; node is the index of the node its first task runs on.

    key_grouping_parameters are those that are not the defaults.

    text is what was submitted, defaults left out; window_s repeats the length of its windows in
    seconds. Of a query that is split over several tasks, task_ranges has the node of each range of
    tasks: [node, first, stop]; aggregator is its aggregator node, null without one, and
    aggregators has all, of which the first is aggregator. incarnation
    grows with each restart without state. drops are its drop rules. fault has the reason why the
    data plane could not compute the query: why, stage of the engine, node (index), and sample, some
    rows of the input; empty for none. What it costs is 0 before the first measurement. late_at: the
    last of its late records.
    """

    fault: dict[str, Any]
    task_ranges: list[tuple[int, int, int]]
    aggregator: int | None
    aggregators: list[int]
    drops: list[DropOut]
    incarnation: int
    late_at: datetime | None
    placed_at: datetime | None

    @classmethod
    def of(cls, row: QueryListRow) -> Self:
        """Return the body of a row."""
        query = row.query
        return response_of(
            cls,
            query,
            **submitted_values(query),
            **values_of(COLUMNS, row),
            streams=list(row.left),
            text=_text(row),
            task_ranges=list(row.task_ranges),
            aggregator=None if query.aggregator is None else query.aggregator.index,
            aggregators=query.aggregators,
            drops=[DropOut.of(drop) for drop in row.drops],
        )


def _text(row: QueryListRow) -> dict[str, Any]:
    """Return the text as it was submitted: streams by name."""
    text: dict[str, Any] = json.loads(row.query.text)
    return text | {"right": list(row.right)} if row.right else text


class SubmittedOut(Schema):
    """The queries of a bulk request."""

    count: int
    names: list[str]


class WindowEstimateOut(Schema):
    """An estimate of a count or sum over all records, from those that drop rules kept.

    low, high: the 95 % confidence interval; null if the results do not bound it.
    """

    value: float
    low: float | None
    high: float | None


class WindowOut(Schema):
    """One window of one key of a query: key and aggregates by name.

    Moments are ISO 8601, the key column `stream` holds the stream's name; decimals, infinities and
    NaN are texts. batch is the newest micro-batch that changed the window. state is open (records
    may change it), final (complete) or incomplete (nothing changes it any more, but its query
    ended before all its records had come). changed_at is the time of the last change of a value.
    errors has for an aggregate without a value the reason. kept is the estimated fraction of the
    records of the window that drop rules kept: 1 if they dropped none, null if it is unknown.
    values are those of the kept records; estimates has for counts and sums of a window with kept
    below 1 an estimate over all records.
    """

    model_config = shown("window_start state key values")

    window_start: datetime
    key: dict[str, Any]
    values: dict[str, Any]
    batch: int
    state: str
    changed_at: datetime | None = None
    errors: dict[str, str] = {}
    kept: float | None = 1.0
    estimates: dict[str, WindowEstimateOut] = {}


WindowPageOut = list_of("WindowPageOut", windows=WindowOut)


QueryPage = list_of("QueryPage", queries=QueryOut)
