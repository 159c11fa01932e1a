"""The live queries that read a stream, and which of them a change of its schema would break.

A query is affected if it cannot be compiled over the changed schema, or if it would compute
something else: its key, its state and its results follow from the kinds of its columns.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q

from controlplane.catalog.computations import schema_of
from controlplane.models import QueryStream, Stream
from controlplane.models.query import LIVE_STATES
from controlplane.pagination.chunks import chunks
from controlplane.topology.rows import streams_of
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import BadQuery, Computation, computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.schema import StreamSchema, common_kinds


@dataclass(frozen=True)
class SchemaReader:
    """A live query: its name, its text as stored, and the streams of its sides by id."""

    name: str
    text: str
    left: tuple[int, ...]
    right: tuple[int, ...] = ()


def live_readers(stream: Stream) -> list[SchemaReader]:
    """Return the live queries that read a stream, by name."""
    rows = QueryStream.objects.filter(stream=stream, query__state__in=LIVE_STATES)
    texts = {
        pk: (name, text)
        for pk, name, text in rows.values_list("query_id", "query__name", "query__text")
    }
    reads: dict[int, list[int]] = {}
    for part in chunks(list(texts)):
        reads |= streams_of(Q(query__in=part))
    readers = [_reader(name, text, reads.get(pk, [])) for pk, (name, text) in texts.items()]
    return sorted(readers, key=lambda reader: reader.name)


def schemas_of(readers: Iterable[SchemaReader]) -> dict[int, StreamSchema]:
    """Return the schemas of all streams that queries read, by id; streams without one are not."""
    ids = sorted({pk for reader in readers for pk in (*reader.left, *reader.right)})
    schemas: dict[int, StreamSchema] = {}
    for part in chunks(ids):
        rows = Stream.objects.filter(pk__in=part)
        for pk, row in rows.values_list("pk", "schema"):
            if (schema := schema_of(row)) is not None:
                schemas[pk] = schema
    return schemas


def affected(
    readers: Sequence[SchemaReader],
    schemas: Mapping[int, StreamSchema],
    stream: int,
    new: StreamSchema,
) -> dict[str, str]:
    """Return why queries would break if a stream had another schema, by the name of the query.

    `schemas`: of all streams that they read, as they are.
    """
    changed = {**schemas, stream: new}
    compiler = _Compiler()
    reasons: dict[str, str] = {}
    for reader in readers:
        before = compiler.compiled(reader, schemas)
        after = compiler.compiled(reader, changed)
        if before != after:
            reason = after if isinstance(after, str) else "it would compute something else"
            reasons[reader.name] = reason
    return reasons


class _Compiler:
    """Compiles queries; those that share text and columns, which most do, once."""

    def __init__(self) -> None:
        self._known: dict[object, Computation | str] = {}

    def compiled(
        self, reader: SchemaReader, schemas: Mapping[int, StreamSchema]
    ) -> Computation | str:
        """Return what a query computes, or why it computes nothing."""
        left, right = (_kinds(side, schemas) for side in (reader.left, reader.right))
        key = (reader.text, tuple(left.items()), tuple(right.items()))
        if key not in self._known:
            self._known[key] = _compiled(reader.text, left, right if reader.right else None)
        return self._known[key]


def _compiled(
    text: str, left: Mapping[str, Kind], right: Mapping[str, Kind] | None
) -> Computation | str:
    try:
        return computation_of(QueryText.from_json(json.loads(text)), left, right)
    except BadQuery as bad:
        return "; ".join(bad.fields.values())


def _kinds(side: Iterable[int], schemas: Mapping[int, StreamSchema]) -> dict[str, Kind]:
    return common_kinds(schemas[pk] for pk in side if pk in schemas)[0]


def _reader(name: str, text: str, streams: Sequence[int]) -> SchemaReader:
    right = tuple(json.loads(text).get("right", ())) if text else ()
    left = tuple(pk for pk in streams if pk not in right)
    return SchemaReader(name, text, left, tuple(pk for pk in streams if pk in right))
