"""Changes of sinks by people: creation, settings, pause, replay, retry, and removal.

Admins decide where results go, as they do of logs and webhooks; operators run the sinks.
"""

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import ADMIN, Actor, require, require_operator
from controlplane.errors import Conflict, Fields, Invalid
from controlplane.events.publish import announce, event
from controlplane.formats.moments import read_moment
from controlplane.models import Cluster, Query, RefusedResult, Sink
from controlplane.models.query import LIVE_STATES
from controlplane.models.sink import STREAM_KIND
from controlplane.pagination.lookup import row_by
from controlplane.sinks.catalog import KINDS
from controlplane.sinks.columns import RESERVED, result_table
from controlplane.sinks.network import connect_stream
from controlplane.sinks.reading import place_from

# Each sink is a thread.
MAX_OF_QUERY: Final = 10
MAX_SINKS: Final = 200
MAX_NAME: Final = 60
NOW: Final = "now"
OLDEST: Final = "oldest"
MODES: Final = tuple(str(mode) for mode in Sink.Mode.values)
CORRECTIONS: Final = tuple(str(name) for name in Sink.Corrections.values)
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]*")


@dataclass(frozen=True)
class SinkSpec:
    """A requested sink; `start`: now, oldest, or a time (ISO 8601) of the first window's start."""

    name: str
    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    mode: str = Sink.Mode.FINAL_ONLY.value
    corrections: str = Sink.Corrections.UPDATE.value
    start: str = NOW
    paused: bool = False


def add(actor: Actor, query: Query, spec: SinkSpec, *, is_checked: bool = False) -> Sink:
    """Add a sink to a live query; `is_checked`: whether the caller has called `check`.

    Raises `Forbidden`, `Invalid` by field, `Conflict`.
    """
    cluster = query.cluster
    require(actor, ADMIN, cluster)
    if query.state not in LIVE_STATES:
        raise Conflict("query_over", f"{query.name} has ended: a sink needs a live query")
    if not is_checked:
        check(spec)
    _check_columns(query)
    position = _position(cluster, query, spec.start)
    with transaction.atomic():
        if sinks_of(query).count() >= MAX_OF_QUERY or Sink.objects.count() >= MAX_SINKS:
            text = f"At most {MAX_OF_QUERY} sinks of a query, and {MAX_SINKS} together"
            raise Conflict("too_many_sinks", text)
        if sinks_of(query).filter(name=spec.name).exists():
            raise Invalid({"name": [f"{query.name} has a sink {spec.name} already"]})
        _connect(actor, query, spec)
        now = timezone.now()
        sink = Sink.objects.create(
            query=query, name=spec.name, kind=spec.kind, uid=uuid.uuid4(), position=position,
            caught_up_at=now, created_by=actor.name, created_at=now, paused=spec.paused,
            **_columns(spec),
        )  # fmt: skip
        _record(
            actor, sink, "add", after={"kind": spec.kind, "start": spec.start, **_columns(spec)}
        )
    return sink


def change(actor: Actor, sink: Sink, spec: SinkSpec, *, is_checked: bool = False) -> Sink:
    """Change settings, mode and corrections; kind, name and position stay. Raises as `add`."""
    require(actor, ADMIN, sink.query.cluster)
    if spec.kind != sink.kind or spec.name != sink.name:
        raise Invalid({"kind": ["Name and kind of a sink do not change: add another one"]})
    if not is_checked:
        check(spec)
    after = _columns(spec)
    before = {name: getattr(sink, name) for name in after}
    with transaction.atomic():
        _connect(actor, sink.query, spec)
        _update(sink, version=sink.version + 1, retry_at=None, **after)
        _record(actor, sink, "change", before=before, after=after)
    return sink


@transaction.atomic
def set_paused(actor: Actor, sink: Sink, *, paused: bool, reason: str = "") -> Sink:
    """Pause or resume a sink. Raises `Forbidden`."""
    require_operator(actor, sink.query.cluster)
    if sink.paused != paused:
        now = timezone.now()
        _update(sink, paused=paused, retry_at=None, **({} if paused else {"caught_up_at": now}))
        _record(actor, sink, "pause" if paused else "resume", reason=reason)
    return sink


@transaction.atomic
def retry(actor: Actor, sink: Sink) -> Sink:
    """Let a failing sink try again at once. Raises `Forbidden`."""
    require_operator(actor, sink.query.cluster)
    _update(sink, retry_at=None)
    _record(actor, sink, "retry")
    return sink


def replay(actor: Actor, sink: Sink, start: str) -> Sink:
    """Write the stored results again, from a start on. Raises `Forbidden`, `Invalid`."""
    require(actor, ADMIN, sink.query.cluster)
    position = _position(sink.query.cluster, sink.query, start)
    with transaction.atomic():
        _update(sink, epoch=sink.epoch + 1, version=sink.version + 1, position=position,
                retry_at=None)  # fmt: skip
        _record(actor, sink, "replay", after={"start": start})
    return sink


@transaction.atomic
def replay_refused(actor: Actor, sink: Sink) -> int:
    """Let the sink write all refused results again, as they are then; return how many."""
    require_operator(actor, sink.query.cluster)
    count = sink.refused_results.update(requested=True)
    _update(sink, retry_at=None)
    _record(actor, sink, "replay-refused", after={"results": count})
    return count


@transaction.atomic
def delete_refused(actor: Actor, sink: Sink) -> int:
    """Delete all refused results of a sink; return how many. Raises `Forbidden`."""
    require_operator(actor, sink.query.cluster)
    count, _ = sink.refused_results.all().delete()
    _update(sink, retry_at=None)
    _record(actor, sink, "delete-refused", after={"results": count})
    return count


@transaction.atomic
def remove(actor: Actor, sink: Sink) -> None:
    """Remove a sink; what it has written stays. Raises `Forbidden`."""
    require(actor, ADMIN, sink.query.cluster)
    _record(actor, sink, "remove", before={"kind": sink.kind, "written": sink.written})
    sink.delete()


def sink_of(query: Query, name: str) -> Sink:
    """Return a sink of a query by its name. Raises `NotFound`."""
    return row_by(sinks_of(query), "sink", name=name)


def sinks_of(query: Query) -> "QuerySet[Sink]":
    """Return the sinks of a query by name."""
    return Sink.objects.filter(query=query).select_related("query__cluster").order_by("name")


def refused_of(sink: Sink) -> "QuerySet[RefusedResult]":
    """Return the refused results of a sink, the newest first."""
    return sink.refused_results.order_by("-refused_at", "-pk")


def spec_of(sink: Sink) -> SinkSpec:
    """Return the specification of a sink."""
    return SinkSpec(
        sink.name, sink.kind, sink.settings, sink.mode, sink.corrections, NOW, sink.paused
    )


def _connect(actor: Actor, query: Query, spec: SinkSpec) -> None:
    if spec.kind == STREAM_KIND:
        stream = str(_columns(spec)["settings"]["stream"])
        connect_stream(actor, query, stream, spec.mode, spec.name)


def _columns(spec: SinkSpec) -> dict[str, Any]:
    settings = KINDS[spec.kind].checked(spec.settings).model_dump(mode="json")
    return {"settings": settings, "mode": spec.mode, "corrections": spec.corrections}


def check(spec: SinkSpec) -> None:
    """Raise `Invalid` for wrong values, and for a destination that the site does not list.

    Call it outside of transactions: resolving a name takes seconds, and SQLite has one writer.
    """
    faults: Fields = {}
    if not _NAME.fullmatch(spec.name) or len(spec.name) > MAX_NAME:
        faults["name"] = [f"Lower-case letters, digits and hyphens, at most {MAX_NAME}"]
    for name, value, choices in (
        ("kind", spec.kind, KINDS), ("mode", spec.mode, MODES),
        ("corrections", spec.corrections, CORRECTIONS),
    ):  # fmt: skip
        if value not in choices:
            faults[name] = [f"Must be one of {', '.join(choices)}"]
    if faults:
        raise Invalid(faults)
    KINDS[spec.kind].check(spec.settings)


def _check_columns(query: Query) -> None:
    """Raise `Invalid` if a column of the results has a name of the columns that sinks add."""
    table = result_table(query)
    taken = sorted({column.name for column in (*table.key, *table.values)} & RESERVED)
    if taken:
        text = f"The query names {', '.join(taken)}, which sinks add: submit it with another name"
        raise Invalid({"name": [text]})


def _position(cluster: Cluster, query: Query, start: str) -> str:
    try:
        moment: datetime | None = None if start in {NOW, OLDEST} else read_moment(start)
    except ValueError:
        raise Invalid({"start": ["Must be now, oldest, or a time as 2026-01-31T12:00Z"]}) from None
    start_ms = None if moment is None else round(moment.timestamp() * 1000)
    return str(place_from(cluster, query, start_ms, is_now=start == NOW))


def _update(sink: Sink, **values: Any) -> None:
    for name, value in values.items():
        setattr(sink, name, value)
    sink.save(update_fields=list(values))


def _record(
    actor: Actor, sink: Sink, verb: str, *, reason: str = "",
    before: Mapping[str, Any] | None = None, after: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    cluster, subject = sink.query.cluster, f"{sink.query.name}/{sink.name}"
    audit.record(
        actor, f"sink.{verb}", subject, cluster=cluster, reason=reason, before=before, after=after
    )
    text = f"{actor.name}: {verb.replace('-', ' ')} sink {subject}"
    announce(cluster.pk, event("state", text), passing=True)
