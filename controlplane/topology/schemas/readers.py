"""What a change of a stream's schema would do: its parts, refusals, and the queries that break.

A live query is affected if it cannot be compiled over the changed schema, or if it would compute
something else: its key, its state and its results follow from the kinds of its columns. The service
and the preview of the page use the same assessment.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Q

from controlplane.catalog.computations import schema_of
from controlplane.models import QueryStream, Stream
from controlplane.models.query import LIVE_STATES
from controlplane.pagination.chunks import chunks
from controlplane.topology.rows import streams_of
from controlplane.topology.schemas.evolution import (
    EVENT_TIME,
    SchemaChange,
    applied,
    changes_between,
    without_column,
)
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


# The number of queries that a refusal names, besides their count.
MAX_NAMED: Final = 20
_READ: Final = "a live query reads it"
_TOGETHER: Final = "the changes together would change what a live query computes"


@dataclass(frozen=True)
class Assessed:
    """One change, why it is refused (empty: it is not), and the live queries it would break."""

    change: SchemaChange
    refusal: str = ""
    queries: tuple[str, ...] = ()
    # The message of the first of them.
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the change as JSON values; of many queries the first."""
        return {
            "column": self.change.name,
            "action": self.change.action,
            "detail": self.change.detail,
            "reason": self.refusal,
            "query_reason": self.reason,
            "queries": list(self.queries[:MAX_NAMED]),
            "query_count": len(self.queries),
            "sentence": self.sentence(),
        }

    def sentence(self) -> str:
        """Return the change, and why it is refused, as a sentence."""
        change = f"{self.change.name} {self.change.action}"
        if not self.refusal:
            return change
        named = ", ".join(self.queries[:MAX_NAMED])
        more = len(self.queries) - MAX_NAMED
        many = f" and {more:,} more" if more > 0 else ""
        broken = f" (would break {named}{many})" if self.queries else ""
        return f"{change}: {self.refusal}{broken}"


def assess(
    old: StreamSchema,
    new: StreamSchema,
    readers: Sequence[SchemaReader],
    schemas: Mapping[int, StreamSchema],
    stream: int,
    retired: Mapping[str, str] | None = None,
) -> list[Assessed]:
    """Return every change from a schema to another, with what speaks against it.

    `schemas`: of all streams that the readers read, as they are.
    """
    assessments = []
    for change in changes_between(old, new, retired):
        broken = _broken(old, new, change, readers, schemas, stream)
        refusal = change.refusal or (_READ if broken else "")
        why = next(iter(broken.values()), "")
        assessments.append(Assessed(change, refusal, tuple(broken) if refusal else (), why))
    if assessments and not any(assessed.refusal for assessed in assessments):
        together = affected(readers, schemas, stream, new)
        if together:
            change = SchemaChange("columns", "changed", "all changes together")
            why = next(iter(together.values()))
            assessments.append(Assessed(change, _TOGETHER, tuple(together), why))
    return assessments


def _broken(
    old: StreamSchema,
    new: StreamSchema,
    change: SchemaChange,
    readers: Sequence[SchemaReader],
    schemas: Mapping[int, StreamSchema],
    stream: int,
) -> dict[str, str]:
    """Return the queries that one change would break, if it were the only one."""
    if change.action == "set":
        every = {reader.name: "its windows follow the event time" for reader in readers}
        return every if change.name == EVENT_TIME else {}
    if change.refusal and change.action != "added":
        # A change that cannot be stands for the loss of the column: what reads it is named.
        single = without_column(old, change.name)
    else:
        single = applied(old, new, change)
    return {} if single is None else affected(readers, schemas, stream, single)
