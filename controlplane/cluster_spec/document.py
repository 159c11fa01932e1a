"""The format of a cluster description; its JSON schema and docs are derived from this module."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, Discriminator, Field, Tag, create_model

from controlplane.catalog.characteristics import characteristic_fields
from controlplane.catalog.query_models import query_fields, text_fields
from controlplane.cluster_spec.connection_parts import DocumentPart, SinkPart, SourcePart
from controlplane.errors import WeirError
from controlplane.formats.moments import IN_CALENDAR
from controlplane.policies.settings import optional_fields
from controlplane.wire.routing.ladder import MAX_COSTS, MAX_RUNGS, MAX_WINDOWS
from controlplane.wire.schema import (
    DEFAULT_IDLE_AFTER_S,
    DEFAULT_MAX_FUTURE_S,
    DEFAULT_WATERMARK_DELAY_S,
    MAX_COLUMNS,
    MAX_NAME,
)
from controlplane.wire.types import MAX_TYPE_LENGTH


class BadDescription(WeirError):
    """An invalid description: messages by their place in the document."""

    def __init__(self, faults: Mapping[str, Sequence[str]]) -> None:
        self.faults = {place: list(message) for place, message in faults.items()}
        count = len(self.faults)
        super().__init__(f"The description has {count} {'fault' if count == 1 else 'faults'}")


# Of this format: a document of another number is refused, not guessed at.
FORMAT: Final = 1
MAX_RATE: Final = 1e9
MAX_CAPACITY: Final = 1e7
_SMALL: Final = 32_767
_DAY_S: Final = 86_400
Moment = Annotated[AwareDatetime, IN_CALENDAR, Field(strict=False)]


class ClusterPart(DocumentPart):
    """The cluster itself."""

    slug: str = Field(max_length=40, pattern=r"^[-a-zA-Z0-9_]+$", description="its name in URLs")
    name: str = Field(min_length=1, max_length=100, description="its name for people")
    description: str = Field("", description="free text")
    slots: int = Field(4, ge=1, le=_SMALL, description="how many nodes it has")
    splits: int = Field(2, ge=1, le=_SMALL, description="split nodes")
    split_capacity: float = Field(
        0.0, ge=0, le=MAX_CAPACITY, description="records/s of each split node; 0: measured"
    )
    split_emulated: bool = Field(False, description="whether split nodes are limited to it")  # noqa: FBT003
    nu: float = Field(0.05, ge=0, description="slack of the placement, relative")
    alpha: float = Field(10.0, ge=0, description="slack of the placement, in queries")
    trigger_ms: int = Field(1000, ge=1, le=2**31 - 1, description="milliseconds per micro-batch")
    master: str = Field("local[2]", max_length=200, description="which Spark runs the nodes")
    log_url: str = Field("", max_length=300, description="where the records are; empty: in Redis")
    log_limit_mb: int = Field(
        512, ge=1, le=2**31 - 1, description="MiB of records that may wait to be read"
    )
    partitions: int | None = Field(
        None, ge=1, le=256, description="Spark partitions of a new checkpoint; left out: its cores"
    )
    max_records: int = Field(
        200_000, ge=1_000, le=10_000_000, description="records of a micro-batch, at most"
    )
    max_batch_mb: int = Field(64, ge=1, le=1024, description="MiB of a micro-batch, at most")


class NodePart(DocumentPart):
    """A node."""

    index: int = Field(ge=0, le=_SMALL, description="its number, below the cluster's slots")
    name: str = Field(min_length=1, max_length=60)
    capacity: float = Field(500.0, gt=0, le=MAX_CAPACITY, description="deliveries/s")
    emulated: bool = Field(False, description="whether it is held to its capacity")  # noqa: FBT003
    active: bool = Field(True, description="whether it may host queries")  # noqa: FBT003


class ColumnPart(DocumentPart):
    """A column of a stream."""

    name: str = Field(min_length=1, max_length=MAX_NAME, description="letters, digits and _")
    type: str = Field(
        max_length=MAX_TYPE_LENGTH,
        description="`int64`, `string`, `decimal(12, 2)`, …: docs/producers.md",
    )
    nullable: bool = True


class SchemaPart(DocumentPart):
    """The schema of a stream: its columns, when its records happened, how late they may come."""

    columns: list[ColumnPart] = Field(min_length=1, max_length=MAX_COLUMNS)
    event_time: str = Field("", description="a timestamp column; empty: the time of arrival")
    watermark_delay_s: float = Field(
        DEFAULT_WATERMARK_DELAY_S, ge=0, description="how much older than the newest"
    )
    max_future_s: float = Field(
        DEFAULT_MAX_FUTURE_S, ge=0, description="beyond it, a record is a dead letter"
    )
    idle_after_s: float = Field(
        DEFAULT_IDLE_AFTER_S, ge=0, description="without records, a stream holds no join open"
    )


_CHARACTERISTICS: Any = create_model(
    "_Characteristics", __base__=DocumentPart, **characteristic_fields()
)


class CharacteristicsPart(_CHARACTERISTICS):  # type: ignore[misc]  # the fields are the declared ones
    """What is known of a stream's rate from outside; what is left out is not known."""


PartitionNumber = Annotated[str, Field(pattern="^(0|[1-9][0-9]{0,8})$")]


class StreamPart(DocumentPart):
    """A stream."""

    name: str = Field(min_length=1, max_length=100)
    title: str = Field("", max_length=200)
    declared_rate: float | None = Field(
        None, ge=0, le=MAX_RATE, description="records/s, as its producer declares"
    )
    rate: float | None = Field(None, ge=0, le=MAX_RATE, description="records/s, as measured")
    split: int | None = Field(
        None, ge=0, le=_SMALL, description="its split node; left out: the least loaded"
    )
    partition_splits: dict[PartitionNumber, int] = Field(
        default_factory=dict,
        description="by number of a partition of its source, the split node that reads it; the "
        "others stay as they are, at first in a round-robin",
    )
    data_schema: SchemaPart | None = Field(
        None, alias="schema", description="a new stream needs one; left out: as it is"
    )
    source: SourcePart | None = Field(
        None,
        description="where its records are; left out: as it is, or the cluster's log",
    )
    meta: dict[str, Any] = Field(default_factory=dict, description="what else is known of it")
    characteristics: CharacteristicsPart | None = Field(
        None, description="of its rate over time; left out: as they are"
    )

    @property
    def weight(self) -> float:
        """The rate that planners use: the measured one, else the declared one, else 1."""
        return self.rate or self.declared_rate or 1.0


_TEXT: Any = create_model("_Text", __base__=DocumentPart, **text_fields(checked=True))


class TextPart(_TEXT):  # type: ignore[misc]  # the fields are the declared ones
    """What a query computes, as text (docs/queries.md)."""


class MeasuredPart(DocumentPart):
    """What each task of a query was measured at; planners use it, an application leaves it."""

    evaluations_per_s: list[float] = Field(default_factory=list)
    state_bytes: list[int] = Field(default_factory=list)


_QUERY: Any = create_model(
    "_Query",
    __base__=DocumentPart,
    **query_fields(TextPart, checked=True, moment=AwareDatetime),
)


class QueryPart(_QUERY):  # type: ignore[misc]  # as above
    """A query: the streams that it reads, and what it computes of their records."""

    aggregator: int | None = Field(
        None,
        ge=0,
        description="the index of the node that merges its windows; of a placed query with a "
        "key grouping; left out: the least loaded",
    )
    more_aggregators: list[int] = Field(
        default_factory=list,
        description="the indices of further nodes that merge its windows, each a share of its keys",
    )
    measured: MeasuredPart | None = None

    @property
    def aggregators(self) -> tuple[int, ...]:
        """The indices of the nodes that merge its windows, as far as they are named."""
        return () if self.aggregator is None else (self.aggregator, *self.more_aggregators)

    @property
    def reads(self) -> list[str]:
        """The streams that it reads, of both sides."""
        return [*self.streams, *self.text.right]


class TaskRangePart(DocumentPart):
    """Tasks [first, stop) of a query, on one node."""

    node: int = Field(ge=0, description="a node's index")
    first: int = Field(ge=0)
    stop: int = Field(ge=1)


def _kind_of_place(value: Any) -> str:
    return "task_ranges" if isinstance(value, list) else "node"


Place = Annotated[
    Annotated[int, Field(ge=0, description="the index of the node with all its tasks"), Tag("node")]
    | Annotated[list[TaskRangePart], Field(min_length=1), Tag("task_ranges")],
    Discriminator(_kind_of_place),
]
Share = Annotated[float, Field(ge=0, le=1)]


_POLICY: Any = create_model("_Policy", __base__=DocumentPart, **optional_fields())


class PolicyPart(_POLICY):  # type: ignore[misc]  # the fields are those of the settings
    """The cluster's policy; what is left out stays as it is, or has Weir's default."""

    def given(self) -> dict[str, Any]:
        """Return the settings that are named."""
        given: dict[str, Any] = self.model_dump(exclude_none=True)
        return given


class BlackoutPart(DocumentPart):
    """A time range in which nothing starts automatically: a cron line and minutes, or a range."""

    cron: str = Field("", max_length=100, description="five fields, in UTC; empty: a range")
    minutes: int = Field(0, ge=0, description="after each moment of the cron line")
    starts_at: Moment | None = None
    ends_at: Moment | None = None
    reason: str = Field(min_length=1, max_length=300)

    @property
    def period(self) -> tuple[str, int, datetime | None, datetime | None]:
        """Return the period, which identifies a blackout."""
        return " ".join(self.cron.split()), self.minutes, self.starts_at, self.ends_at


class ExclusionPart(DocumentPart):
    """What no plan may move: a query, what is on a node, or what reads a stream."""

    kind: Literal["query", "node", "stream"]
    subject: str = Field(max_length=100, description="by name")
    until: Moment = Field(description="when it expires, within 90 days")
    reason: str = Field(min_length=1, max_length=300)

    @property
    def about(self) -> tuple[str, str]:
        """What is excluded; of that there is one exclusion."""
        return self.kind, self.subject


class EdgePart(DocumentPart):
    """An edge; it has one drop rule."""

    stream: str
    query: str = Field("", description="of the split edge to this query; empty: the input edge")

    @property
    def edge(self) -> tuple[str, str]:
        """Return the names of the stream and the query."""
        return self.stream, self.query


class DropPart(EdgePart):
    """What an edge loses on purpose: a share of its records by chance, or of its windows whole."""

    share: float = Field(gt=0, le=1)
    window_s: float | None = Field(
        None, gt=0, description="the length of the windows that go whole; null: records go"
    )
    slide_s: float | None = Field(
        None, gt=0, description="null: one behind the other, of a split edge as its query's"
    )
    batch: int = Field(1, ge=1, description="how many neighbours go together")
    reason: str = ""


class KeptEdgePart(EdgePart):
    """The part of the stream's records that a rung keeps up to an edge."""

    part: Share


class EdgeCostPart(EdgePart):
    """The time of a resource that a record on an edge takes."""

    resource: Literal["split", "node", "aggregator"]
    number: int = Field(ge=0, le=_SMALL, description="of the split node; else the node's index")
    seconds: float = Field(ge=0, description="per record")


class EdgeWindowPart(EdgePart):
    """An edge on which whole windows are dropped instead of records."""

    window_s: float = Field(gt=0, description="their length")
    slide_s: float | None = Field(None, gt=0, description="null: one behind the other")
    batch: int = Field(1, ge=1, description="how many neighbours are dropped together")


class RungPart(DocumentPart):
    """A rung of a ladder."""

    factor: float = Field(gt=0, description="input over what the cluster can process; ascending")
    kept: list[KeptEdgePart] = Field(description="other edges keep all that reaches them")


class LadderPart(DocumentPart):
    """The armed ladder of load shedding: what the cluster drops in an overload."""

    rungs: list[RungPart] = Field(min_length=1, max_length=MAX_RUNGS)
    costs: list[EdgeCostPart] = Field(
        default_factory=list, max_length=MAX_COSTS, description="as measured there"
    )
    windows: list[EdgeWindowPart] = Field(default_factory=list, max_length=MAX_WINDOWS)
    limit: float = Field(1.0, gt=0, le=1, description="the largest load of a resource")
    hold_s: float = Field(30.0, ge=0, le=_DAY_S, description="steps down after so much less input")
    drain_s: float = Field(5.0, ge=0.001, le=_DAY_S, description="works off a backlog within")
    empty_batch_s: float | None = Field(
        None, ge=0, le=_DAY_S,
        description="costs are assumed, up to a factor: the time of a batch with few records",
    )  # fmt: skip
    reason: str = ""


class ClusterDescription(DocumentPart):
    """A cluster: nodes, streams, queries and where these are, policy, exceptions and drops."""

    weir: Literal[1] = Field(description="the number of this format")
    cluster: ClusterPart
    nodes: list[NodePart] = Field(default_factory=list)
    streams: list[StreamPart] = Field(default_factory=list)
    queries: list[QueryPart] = Field(default_factory=list)
    placement: dict[str, Place] = Field(
        default_factory=dict, description="by a query's name: a node's index, or ranges of tasks"
    )
    policy: PolicyPart = Field(default_factory=PolicyPart)
    blackouts: list[BlackoutPart] = Field(default_factory=list)
    exclusions: list[ExclusionPart] = Field(default_factory=list)
    drops: list[DropPart] = Field(default_factory=list)
    ladder: LadderPart | None = Field(None, description="left out: the enabled one stays")
    sinks: list[SinkPart] = Field(default_factory=list, description="a new one starts now")

    def task_ranges(self, query: QueryPart) -> list[TaskRangePart]:
        """Return which node has which tasks of a query, nothing where it is not placed."""
        place = self.placement.get(query.name)
        if isinstance(place, int):
            return [TaskRangePart(node=place, first=0, stop=query.tasks)]
        return place or []

    def to_json(self) -> dict[str, Any]:
        """Return JSON values; of rows, what differs from the default."""
        rows = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return rows | {"cluster": self.cluster.model_dump(mode="json")}


def json_schema() -> Mapping[str, Any]:
    """Return the JSON schema of a description."""
    return ClusterDescription.model_json_schema(by_alias=True)
