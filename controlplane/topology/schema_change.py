"""Changing the schema of a stream while queries read it: looked at first, then made or refused."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from controlplane.access.roles import Actor, require_operator
from controlplane.catalog.computations import schema_of
from controlplane.errors import Conflict
from controlplane.models import Stream
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.schemas.evolution import patched, retired_after
from controlplane.topology.schemas.readers import Assessed, assess, live_readers, schemas_of
from controlplane.topology.versions import retry_when_moved
from controlplane.wire.routing.cluster_actions import SetSchema
from controlplane.wire.schema import ColumnSpec, StreamSchema

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
