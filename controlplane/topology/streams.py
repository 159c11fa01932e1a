"""Registering streams and giving each a split node; changing their schemas, deleting them.

A change of a schema while queries read it is looked at first, then made or refused.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.catalog import names
from controlplane.catalog.characteristics import checked
from controlplane.catalog.computations import schema_of
from controlplane.catalog.coordinates import LABEL
from controlplane.catalog.split_reading import partition_parts, shares_of
from controlplane.catalog.streams import sinks_into
from controlplane.errors import Conflict, Fields, Invalid, NotFound
from controlplane.models import Cluster, Exclusion, Stream
from controlplane.models.query import LIVE_STATES
from controlplane.numbers import counted
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.schemas.evolution import fields_of, patched, retired_after
from controlplane.topology.schemas.readers import Assessed, assess, live_readers, schemas_of
from controlplane.topology.topics.declaration import source_faults, source_of
from controlplane.topology.versions import retry_when_moved
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import (
    AssignStream,
    RemoveStream,
    SetSchema,
    SetSource,
)
from controlplane.wire.schema import BadSchema, ColumnSpec, StreamSchema

MAX_SPECS = 5000
# The names of readers in a refusal.
_SHOWN: Final = 10
_NO_SCHEMA: Final = {"schema": ["A new stream needs a schema: its columns with their types"]}


# By stream and partition of its source.
Parts = Mapping[int, Mapping[int, float]]


@dataclass(frozen=True)
class StreamSpec:
    """A stream as its producer declares it; declared_rate in records/s.

    schema: a `wire.schema.StreamSchema` as JSON. A stream that is there keeps its own without one;
    a new stream has no columns by default. characteristics: a `StreamMetadata` as JSON, None to
    keep what is declared. source: a declaration of `wire.sources.kinds` as JSON; a stream that is
    there keeps its own without one.
    """

    name: str
    title: str = ""
    schema: dict[str, Any] = field(default_factory=dict)
    declared_rate: float | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    characteristics: Mapping[str, Any] | None = None
    source: dict[str, Any] = field(default_factory=dict)


def register(
    actor: Actor, cluster: Cluster, specs: Sequence[StreamSpec], *, waits: bool = True
) -> list[Stream]:
    """Return the streams in the order of specs; known names are updated.

    New ones go to the split node with the least rate, in one routing version. All or nothing.
    `waits`: False in a transaction of the caller, who has checked that the site lists the sources:
    no name is resolved, and Redis is not asked. Raises `Forbidden`, `Invalid`, and `Conflict`
    (schema_incompatible) for a schema that the stream's present one cannot change to.
    """
    require_operator(actor, cluster)
    _check(specs, resolves=waits)
    return _register(actor, cluster, specs, partition_parts(cluster) if waits else {})


@retry_when_moved
def _register(
    actor: Actor, cluster: Cluster, specs: Sequence[StreamSpec], parts: Parts
) -> list[Stream]:
    cluster.refresh_from_db(fields=["routing_version"])
    known = {stream.name: stream for stream in cluster.streams.all()}
    absent = [spec for spec in specs if spec.name not in known]
    _require_schemas(absent, specs)
    new = _create(cluster, absent, list(known.values()), parts)
    before = {stream.pk: stream.schema for stream in known.values()}
    sources = {stream.pk: stream.source for stream in known.values()}
    changed = _update([(known[spec.name], spec) for spec in specs if spec.name in known])
    every = [*new, *known.values()]
    ops: list[Action] = [AssignStream(stream.pk, stream.split) for stream in new]
    ops += [
        SetSchema(stream.pk, schema)
        for stream in every
        if stream.schema != before.get(stream.pk) and (schema := schema_of(stream.schema))
    ]
    ops += [
        SetSource(stream.pk, source)
        for stream in every
        if stream.source != sources.get(stream.pk) and (source := source_of(stream.source))
    ]
    if ops:
        summary = f"{len(new)} new streams assigned to split nodes" if new else "schemas of streams"
        apply(cluster, ops, TopologyChange(summary, author=actor.name))
    if new or changed:
        audit.record(
            actor,
            "streams.register",
            counted(len(specs), "streams"),
            cluster=cluster,
            after={"new": len(new), "changed": changed, "first": specs[0].name},
        )
    by_name = known | {stream.name: stream for stream in new}
    return [by_name[spec.name] for spec in specs]


@retry_when_moved
def delete(actor: Actor, stream: Stream, confirm: str, reason: str = "") -> None:
    """Delete a stream that no live query reads: its rows, and then its records in Redis.

    `confirm` repeats the name, which another stream can have afterwards. Ended queries keep their
    results. Raises `Forbidden`, `NotFound`, `Invalid`, and `Conflict` (not_confirmed, has_readers,
    has_writers).
    """
    cluster = stream.cluster
    require_operator(actor, cluster)
    cluster.refresh_from_db(fields=["routing_version"])
    if not Stream.objects.filter(pk=stream.pk).exists():
        raise NotFound("stream", stream.name)
    if confirm != stream.name:
        text = f"The deletion of {stream.name} must repeat its name"
        raise Conflict("not_confirmed", text, {"name": stream.name})
    readers = cluster.queries.filter(subscriptions__stream=stream, state__in=LIVE_STATES)
    if count := readers.count():
        names = list(readers.order_by("name").values_list("name", flat=True)[:_SHOWN])
        more = f" and {count - _SHOWN:,} more" if count > _SHOWN else ""
        text = f"{stream.name} is read by {', '.join(names)}{more}: end these queries first"
        raise Conflict("has_readers", text, {"queries": names, "query_count": count})
    if sinks := sinks_into(stream):
        text = f"The sink {sinks[0]} writes its results to {stream.name}: remove the sink first"
        raise Conflict("has_writers", text, {"sinks": sinks})
    cluster.exclusions.filter(kind=Exclusion.Kind.STREAM, subject=stream.name).delete()
    before = {"title": stream.title, "split": stream.split, "schema": stream.schema}
    change = TopologyChange(
        f"stream {stream.name} is deleted", "stream.delete", stream.name, reason, before
    )
    apply(cluster, [RemoveStream(stream.pk)], change, actor=actor)


def _create(
    cluster: Cluster, specs: Sequence[StreamSpec], known: list[Stream], parts: Parts
) -> list[Stream]:
    carried, shares = [0.0] * cluster.splits, shares_of(cluster, known, parts)
    for stream in known:
        for split, part in shares[stream.pk].items():
            carried[split % cluster.splits] += part * stream.weight
    firsts = Counter(stream.split for stream in known if stream.source)
    rows = []
    # The heaviest first: the longest-processing-time rule keeps the splits even.
    for spec in sorted(specs, key=lambda spec: -(spec.declared_rate or 1.0)):
        # Of equally loaded ones, that which reads the first partition of fewest sources.
        split = min(range(cluster.splits), key=lambda i: (round(carried[i], 3), firsts[i]))
        schema = _schema(spec).to_json()
        row = Stream(cluster=cluster, split=split, name=spec.name, schema=schema, **_columns(spec))
        # The partitions of a new source are not known yet.
        carried[split] += row.weight
        firsts[split] += bool(row.source)
        rows.append(row)
    return Stream.objects.bulk_create(rows, batch_size=200)


def _update(pairs: Sequence[tuple[Stream, StreamSpec]]) -> int:
    changed = []
    for stream, spec in pairs:
        other = bool(spec.schema) and set_columns(stream, _schema(spec))
        columns = _columns(spec)
        if not spec.source:
            columns["source"] = stream.source
        # A person declares them on the page of the stream, which its producer does not know.
        if (declared := stream.meta.get(LABEL)) is not None:
            columns["meta"] = {LABEL: declared} | spec.meta
        for name, value in columns.items():
            other = other or getattr(stream, name) != value
            setattr(stream, name, value)
        if other:
            changed.append(stream)
    fields = ["title", "schema", "source", "retired", "declared_rate", "meta", "characteristics"]
    Stream.objects.bulk_update(changed, fields, batch_size=200)
    return len(changed)


def _require_schemas(new: Sequence[StreamSpec], specs: Sequence[StreamSpec]) -> None:
    """Raise `Invalid` if a new stream comes without a schema."""
    places = {spec.name: index for index, spec in enumerate(specs)}
    missing = {places[spec.name]: dict(_NO_SCHEMA) for spec in new if not spec.schema}
    if missing:
        raise Invalid({}, missing)


def _columns(spec: StreamSpec) -> dict[str, Any]:
    source = source_of(spec.source)
    row = {"title": spec.title, "declared_rate": spec.declared_rate, "meta": spec.meta,
           "source": source.to_json() if source else {}}  # fmt: skip
    if spec.characteristics is None:
        return row
    return row | {"characteristics": checked(spec.characteristics)}


def _schema(spec: StreamSpec) -> StreamSchema:
    return StreamSchema.from_text(json.dumps(spec.schema, sort_keys=True))


def _check(specs: Sequence[StreamSpec], *, resolves: bool) -> None:
    if not 1 <= len(specs) <= MAX_SPECS:
        raise Invalid({"streams": [f"Give 1 to {MAX_SPECS} streams"]})
    seen: set[str] = set()
    rows = {}
    for index, spec in enumerate(specs):
        faults = _faults(spec)
        if spec.source and not faults:
            schema = _schema(spec) if spec.schema else None
            faults |= source_faults(spec.source, schema, resolves=resolves)
        if spec.name in seen:
            faults.setdefault("name", []).append("Given twice")
        seen.add(spec.name)
        if faults:
            rows[index] = faults
    if rows:
        raise Invalid({}, rows)


def _faults(spec: StreamSpec) -> Fields:
    faults: Fields = {}
    if messages := names.faults_of_stream(spec.name):
        faults["name"] = messages
    if len(spec.title) > 200:  # noqa: PLR2004 - the column's length
        faults["title"] = ["At most 200 characters"]
    if spec.declared_rate is not None and not 0 <= spec.declared_rate <= 1e9:  # noqa: PLR2004
        faults["declared_rate"] = ["Must be 0 to 1,000,000,000 records/s"]
    if spec.characteristics is not None:
        try:
            checked(spec.characteristics)
        except Invalid as error:
            faults |= error.fields
    if spec.schema:
        try:
            _schema(spec)
        except BadSchema as error:
            faults |= fields_of(error, "schema.")
    return faults


CODE: Final = "schema_incompatible"
# A sentence names so many refused columns; data has them all.
_NAMED: Final = 3
Revise = Callable[[StreamSchema | None], StreamSchema]


def preview(stream: Stream, new: StreamSchema) -> list[Assessed]:
    """Return what a change of a stream's schema would do, without making it."""
    old = schema_of(stream.schema)
    if old is None:
        return []
    readers = live_readers(stream)
    schemas = {**schemas_of(readers), stream.pk: old}
    return assess(old, new, readers, schemas, stream.pk, stream.retired)


def set_schema(actor: Actor, stream: Stream, new: StreamSchema, reason: str = "") -> Stream:
    """Give a stream a schema; the same one changes nothing.

    Raises `Forbidden`, and `Conflict` (schema_incompatible) with each refused column, the reason
    and the live queries that it would break.
    """
    return revise(actor, stream, lambda _: new, reason)


def patch_schema(
    actor: Actor,
    stream: Stream,
    columns: Sequence[ColumnSpec] = (),
    removed: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    reason: str = "",
) -> Stream:
    """Add or alter columns by name, remove others, and set what is given; the rest stays.

    `settings`: event_time, watermark_delay_s, max_future_s, idle_after_s. Raises as `set_schema`,
    and `Invalid`.
    """
    given = dict(settings or {})
    return revise(actor, stream, lambda old: patched(old, columns, removed, given), reason)


@retry_when_moved
def revise(actor: Actor, stream: Stream, change: Revise, reason: str = "") -> Stream:
    """Change the schema of a stream to what `change` makes of the present one.

    The row, the routing version that the pipeline follows, and the audit entry are one
    transaction; it starts again when another writer was first. Raises as `set_schema`.
    """
    require_operator(actor, stream.cluster)
    stream = Stream.objects.select_related("cluster").get(pk=stream.pk)
    new = change(schema_of(stream.schema))
    before = dict(stream.schema)
    if not set_columns(stream, new):
        return stream
    change_ = TopologyChange(
        f"schema of {stream.name} changed by {actor.name}", "stream.schema", stream.name,
        reason=reason, before={"schema": before}, after={"schema": stream.schema},
    )  # fmt: skip
    apply(stream.cluster, [SetSchema(stream.pk, new)], change_, actor=actor)
    return stream


def set_columns(stream: Stream, new: StreamSchema) -> bool:
    """Set the schema of a row, unsaved, if that is allowed; return False if it has it already.

    Raises `Conflict` (schema_incompatible).
    """
    old = schema_of(stream.schema)
    if old == new and stream.schema == new.to_json():
        return False
    if old is not None:
        require_compatible(stream, new)
        stream.retired = retired_after(old, new, stream.retired)
    stream.schema = new.to_json()
    return True


def require_compatible(stream: Stream, new: StreamSchema) -> None:
    """Raise `Conflict` with the changes that are refused, if any."""
    refused = [change for change in preview(stream, new) if change.refusal]
    if not refused:
        return
    named = "; ".join(change.sentence() for change in refused[:_NAMED])
    more = f"; and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
    raise Conflict(
        CODE,
        f"The schema of {stream.name} cannot change so: {named}{more}",
        {"stream": stream.name, "columns": [change.to_json() for change in refused]},
    )
