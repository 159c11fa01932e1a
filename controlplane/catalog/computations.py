"""What queries compute: rows and their text to the wire's checked values.

What columns a query can read follows from the schemas of its streams (`wire.schema.common_kinds`).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from django.db.models import TextField
from django.db.models.functions import Cast

from controlplane.models import Cluster, Query, QueryStream
from controlplane.wire.language.tree import Column, Kind
from controlplane.wire.query import SIDES, STREAM, BadQuery, Computation, computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.schema import BadSchema, StreamSchema, common_kinds

# Texts of one process; equal texts are parsed once.
KEPT = 1024
# Streams of which the schemas are looked at where a query names no stream.
MOST_LOOKED_AT = 1_000
# The column of a key with the stream of a record: in a query over one side, and in a join.
_STREAMS: Final = (STREAM, *(f"{side}.{STREAM}" for side in SIDES))
# The kind of a column of top_k.
_LISTED: Final = "list of values with counts"


def schema_of(row: Mapping[str, Any]) -> StreamSchema | None:
    """Return the schema that a stream's row holds, None for a stream that has none yet."""
    try:
        return StreamSchema.from_text(json.dumps(row, sort_keys=True)) if row else None
    except BadSchema:
        return None


def kinds_of(schemas: Iterable[Mapping[str, Any]]) -> dict[str, Kind]:
    """Return the columns that a query over streams with these schemas can read, with their kinds.

    A stream without a schema has no columns.
    """
    return _common(frozenset(schema_of(row) for row in schemas))


def _common(schemas: frozenset[StreamSchema | None]) -> dict[str, Kind]:
    known = [schema for schema in schemas if schema is not None]
    return common_kinds(known)[0] if len(known) == len(schemas) else {}


class StreamColumns:
    """The columns that queries of a cluster can read, by the names of their streams."""

    def __init__(self, cluster: Cluster, schemas: Mapping[str, Mapping[str, Any]]) -> None:
        """Take the schemas of streams by name, as their rows hold them."""
        self._cluster = cluster
        self._schemas = {name: schema_of(row) for name, row in schemas.items()}
        self._kinds: dict[frozenset[StreamSchema | None], dict[str, Kind]] = {}

    def of(self, names: Iterable[str]) -> dict[str, Kind]:
        """Return the columns that all of these streams have.

        Without streams, return the columns that any stream of the cluster has, so that a text can
        be checked before its streams are chosen.
        """
        known = frozenset(self._schemas[name] for name in names if name in self._schemas)
        if known not in self._kinds:
            self._kinds[known] = _common(known) if known else self._any()
        return self._kinds[known]

    def _any(self) -> dict[str, Kind]:
        rows = self._cluster.streams.exclude(schema={}).order_by("id")
        # As text: most streams of a cluster have equal schemas, which are read once.
        texts = rows.annotate(text=Cast("schema", TextField())).values_list("text", flat=True)
        kinds: dict[str, Kind] = {}
        for text in dict.fromkeys(texts[:MOST_LOOKED_AT]):
            kinds = kinds_of([json.loads(text)]) | kinds
        return kinds


def text_of(query: Query) -> QueryText:
    """Return the text of a query."""
    return QueryText.from_json(json.loads(query.text))


def right_of(query: Query) -> frozenset[int]:
    """Return the ids of the streams on the right side of a join, none for any other query."""
    return frozenset(json.loads(query.text).get("right", ()))


def computation_of_query(query: Query) -> Computation:
    """Return what a query computes over the columns that its streams have now.

    Raises `BadQuery` where a column or a function that it names is gone.
    """
    computation = computations_of({query.pk: query.text})[query.pk]
    if isinstance(computation, BadQuery):
        raise computation
    return computation


def computations_of(texts: Mapping[int, str]) -> dict[int, Computation | BadQuery]:
    """Return what queries compute, by id from their texts; or why one cannot be computed."""
    rows = QueryStream.objects.filter(query__in=list(texts)).order_by("query_id", "stream_id")
    schemas: dict[int, dict[int, str]] = {query: {} for query in texts}
    for query, stream, schema in rows.values_list("query_id", "stream_id", "stream__schema"):
        schemas[query][stream] = json.dumps(schema, sort_keys=True)
    return {query: _computed(text, schemas[query]) for query, text in texts.items()}


def _computed(text: str, schemas: Mapping[int, str]) -> Computation | BadQuery:
    right = frozenset(json.loads(text).get("right", ()))
    sides = (
        tuple(sorted({schema for stream, schema in schemas.items() if (stream in right) is side}))
        for side in (False, True)
    )
    try:
        return _computation(text, *sides)
    except BadQuery as bad:
        return bad


@lru_cache(maxsize=KEPT)
def _computation(text: str, left: tuple[str, ...], right: tuple[str, ...]) -> Computation:
    query = QueryText.from_json(json.loads(text))
    kinds = (kinds_of(json.loads(schema) for schema in side) for side in (left, right))
    return computation_of(query, *kinds)


@dataclass(frozen=True)
class OutputColumn:
    """A column of the results: `role` is key or aggregate, `kind` one of the language's."""

    name: str
    kind: str
    role: str


def output_columns(computation: Computation) -> list[OutputColumn]:
    """Return the columns of the results: the key, then the aggregates."""
    keys = [OutputColumn(n, str(Kind.TEXT if is_stream(n, e) else e.kind), "key")
            for n, e in computation.key]  # fmt: skip
    values = [OutputColumn(n, _LISTED if a.function == "top_k" else str(a.kind), "aggregate")
              for n, a in computation.aggregates]  # fmt: skip
    return keys + values


def is_stream(name: str, expression: Any) -> bool:
    """Return whether a column of a key is the stream, which is shown by its name."""
    # In a join a named column may be called stream.
    return name in _STREAMS and bool(expression == Column(name, Kind.INT))
