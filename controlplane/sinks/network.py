"""Networks of queries: a sink writes the results of one into a stream that others read.

A query that is submitted has no sink yet, so only a sink can close a cycle.
"""

from typing import Any, Final

from controlplane.access.roles import Actor
from controlplane.catalog.computations import schema_of
from controlplane.catalog.streams import sinks_into
from controlplane.errors import Invalid
from controlplane.models import Cluster, Query, QueryStream, Sink, Stream
from controlplane.models.query import LIVE_STATES
from controlplane.models.sink import STREAM_KIND
from controlplane.sinks.columns import (
    END,
    ResultColumn,
    ResultTable,
    ValueType,
    plain_name,
    result_table,
)
from controlplane.topology import streams
from controlplane.topology.streams import StreamSpec
from controlplane.wire.schema import (
    DEFAULT_IDLE_AFTER_S,
    DEFAULT_MAX_FUTURE_S,
    STREAM,
    BadSchema,
    ColumnSpec,
    StreamSchema,
)
from controlplane.wire.sources.kinds import source_from_json

_FIELD: Final = "settings.stream"
_TYPES: Final = {
    ValueType.INT: "int64",
    ValueType.FLOAT: "float64",
    ValueType.DECIMAL: "decimal(38, 9)",
    ValueType.BOOL: "bool",
    ValueType.TEXT: "string",
    ValueType.TIME: "timestamp(us)",
    ValueType.DATE: "date",
    ValueType.JSON: "string",
}
# Every stream has a column of this name already.
_OF_STREAM: Final = "source_stream"


def column_name(column: ResultColumn) -> str:
    """Return the name that a column of results has in a stream."""
    return plain_name(_OF_STREAM if column.name == STREAM else column.name)


def connect_stream(actor: Actor, query: Query, name: str, mode: str, sink: str) -> None:
    """Let a sink of a query write to a stream, which is declared if it does not exist.

    In a transaction of the caller. Raises `Invalid` if it would close a cycle, if another sink
    writes to the stream, or if the stream has other columns; `Forbidden`; `Conflict`.
    """
    cluster = query.cluster
    # Two sinks that together close a cycle are added one after the other.
    Cluster.objects.select_for_update().get(pk=cluster.pk)
    if cluster.log_url.startswith("kafka://"):
        text = "The log of this cluster is in Kafka; a sink writes to streams of a log in Redis"
        raise Invalid({_FIELD: [text]})
    if path := _path(cluster, name, query):
        text = f"{query.name} reads {path}: its results would be their own input"
        raise Invalid({_FIELD: [text]})
    stream = cluster.streams.filter(name=name).first()
    others = [] if stream is None else sinks_into(stream)
    if others := [other for other in others if other != f"{query.name}/{sink}"]:
        raise Invalid({_FIELD: [f"The sink {others[0]} writes to {name}: name another stream"]})
    table = result_table(query)
    if stream is not None:
        if fault := misfit(stream, table):
            raise Invalid({_FIELD: [fault]})
        return
    try:
        schema = derived_schema(query, table, mode)
        spec = StreamSpec(name, schema=schema.to_json())
        streams.register(actor, cluster, [spec], waits=False)
    except BadSchema as error:
        raise Invalid({_FIELD: [f"The results cannot be records of a stream: {error}"]}) from None
    except Invalid as error:
        raise Invalid({_FIELD: error.rows.get(0, error.fields).get("name", [str(error)])}) from None


def misfit(stream: Stream, table: ResultTable) -> str:
    """Return why results cannot be records of a stream, "" if they can."""
    schema = schema_of(stream.schema)
    if stream.source:
        place = source_from_json(stream.source).place
        return f"The records of {stream.name} come from the {place}: results cannot be appended"
    if schema is None or schema.event_time != END.name:
        return f"The event time of {stream.name} must be its column {END.name}"
    kinds = _schema(table.columns).kinds
    for column in schema.columns:
        if column.name not in kinds and not column.nullable:
            return f"{stream.name} requires {column.name}, which the results do not have"
        kind = schema.kinds.get(column.name)
        if column.name in kinds and kind != kinds[column.name]:
            return f"{stream.name} has {column.name} as {kind}, the results as {kinds[column.name]}"
    return ""


def derived_schema(query: Query, table: ResultTable, mode: str) -> StreamSchema:
    """Return the schema of a new stream, whose event time is the end of the window.

    Final results are in the order of windows, so none is late. A change may be of any open window.
    """
    sources = [schema_of(stream.schema) for stream in query.streams.all()]
    future_s = max([DEFAULT_MAX_FUTURE_S, *(item.max_future_s for item in sources if item)])
    window_s = table.window_ms / 1000
    open_s = window_s if mode == Sink.Mode.EVERY_CHANGE else 0.0
    return _schema(
        table.columns, watermark_delay_s=open_s, max_future_s=future_s + open_s,
        idle_after_s=max(DEFAULT_IDLE_AFTER_S, 2 * window_s),
    )  # fmt: skip


def _schema(columns: tuple[ResultColumn, ...], **times: Any) -> StreamSchema:
    specs = tuple(ColumnSpec(column_name(column), _TYPES[column.type], column != END)
                  for column in columns)  # fmt: skip
    return StreamSchema(specs, END.name, **times)


def _path(cluster: Cluster, first: str, query: Query) -> str:
    """Return how the records of a stream reach a query, such as "b from a", "" if they do not."""
    readers: dict[str, list[Query]] = {}
    rows = QueryStream.objects.filter(query__cluster=cluster, query__state__in=LIVE_STATES)
    written = Sink.objects.filter(query__cluster=cluster, kind=STREAM_KIND)
    outputs: dict[int, list[str]] = {}
    for writer, settings in written.values_list("query", "settings"):
        outputs.setdefault(writer, []).append(settings["stream"])
    # Only queries that write to a stream, and the one that would, can be part of a cycle.
    wanted = rows.filter(query__in=[query.pk, *outputs]).select_related("query", "stream")
    for row in wanted:
        readers.setdefault(row.stream.name, []).append(row.query)
    paths = {first: first}
    waiting = [first]
    while waiting:
        name = waiting.pop()
        for reader in readers.get(name, []):
            if reader.pk == query.pk:
                return paths[name]
            for output in outputs.get(reader.pk, []):
                if output not in paths:
                    paths[output] = f"{output}, which {reader.name} computes from {paths[name]}"
                    waiting.append(output)
    return ""
