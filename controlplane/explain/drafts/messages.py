"""Browsing the records of a source: a worker reads, decodes and filters them; nothing is stored.

A worker does it as it previews queries: in a child with limits of memory and time, for a user who
waits. The offsets of the stream do not move.
"""

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from controlplane.access.roles import Actor, require_operator
from controlplane.catalog.computations import schema_of
from controlplane.errors import Conflict, Invalid
from controlplane.events.task_names import BROWSE_SOURCE
from controlplane.explain.drafts.preview import answered, refusal_of
from controlplane.explain.drafts.values import BROWSE, BrowsedMessage, BrowsedSource, BrowseRequest
from controlplane.models import Cluster, Stream
from controlplane.records.bodies import Format
from controlplane.topology.schemas.inference import Inferred, InferredColumn, infer
from controlplane.topology.topics.declaration import source_faults, source_of
from controlplane.wire.query import BadQuery, computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.sources.files import FileFormat, FileSource
from controlplane.wire.sources.generator import COLUMNS, EventKind, GeneratorSource

# Messages that a page shows, and the characters of a condition.
MOST: Final = 200
_LONGEST: Final = 2_000
_MOST_OFFSET: Final = 2**53
_EVENT_TIME: Final = "date_time"
_FORMATS: Final = {
    FileFormat.JSON: Format.NDJSON, FileFormat.CSV: Format.CSV, FileFormat.PARQUET: Format.PARQUET,
}  # fmt: skip


@dataclass(frozen=True)
class BrowseChoice:
    """Which messages are read: the newest, or those of a partition from an offset, or from a time.

    `topic`: one of a pattern; empty: all.
    `where`: a condition over the columns of the stream, as of a query; empty: all, also those that
    are no records.
    """

    where: str = ""
    partition: int | None = None
    offset: int | None = None
    since: str = ""
    limit: int = field(default=50)
    topic: str = ""


@dataclass(frozen=True)
class SourceSample:
    """The newest messages of a topic, newest first, and the schema that any source suggests."""

    messages: Sequence[BrowsedMessage]
    proposed: Inferred


def browse(actor: Actor, stream: Stream, choice: BrowseChoice) -> BrowsedSource:
    """Return messages, rows or events of the source of a stream, newest first.

    Raises `Forbidden`, `Invalid`, `Conflict` no_source, query_failed, out_of_memory or out_of_time,
    and `Away` preview_away, log_away.
    """
    require_operator(actor, stream.cluster)
    if not stream.source:
        raise Conflict("no_source", f"{stream.name} is in the log of the cluster: preview a query")
    since_ms = _checked(stream, choice)
    request = BrowseRequest(
        stream.cluster_id, stream.pk, json.dumps(stream.source), json.dumps(stream.schema),
        choice.where.strip(), choice.partition, choice.offset, since_ms, choice.limit,
        f"{actor.name} messages", uuid4().hex, choice.topic,
    )  # fmt: skip
    return send(stream.cluster, request)


def sample(actor: Actor, cluster: Cluster, row: Mapping[str, Any]) -> SourceSample:
    """Return the newest records of a source, decoded, and the schema that they suggest.

    Raises as `browse`, and `Conflict` (no_messages).
    """
    require_operator(actor, cluster)
    if faults := source_faults(row, None):
        raise Invalid(faults)
    source = source_of(row)
    if isinstance(source, GeneratorSource):
        return SourceSample([], _generated(source))
    request = BrowseRequest(
        cluster.pk, 0, json.dumps(row, sort_keys=True), "{}", "", None, None, None, MOST,
        f"{actor.name} messages", token=uuid4().hex,
    )  # fmt: skip
    browsed = send(cluster, request)
    if not browsed.sample:
        place = "" if source is None else source.place
        why = next((f": {message.fault}" for message in browsed.messages), "")
        raise Conflict("no_messages", f"No message can be read of the {place}{why}")
    kind = Format.NDJSON
    if isinstance(source, FileSource):
        kind = _FORMATS[FileFormat(source.format)]
    return SourceSample(browsed.messages, infer(b64decode(browsed.sample), kind))


def _generated(source: GeneratorSource) -> Inferred:
    """Return the columns of the events of a generator."""
    columns = tuple(
        InferredColumn(
            name, kind, nullable=name != _EVENT_TIME, may_be_event_time=name == _EVENT_TIME
        )
        for name, kind in COLUMNS[EventKind(source.event)].items()
    )
    return Inferred(source.kind, 0, columns, _EVENT_TIME, {})


def send(cluster: Cluster, request: BrowseRequest) -> BrowsedSource:
    """Return the answer of a worker to a request. Raises as `browse`."""
    response = answered(cluster, request, BROWSE_SOURCE, BROWSE.dump_json(request).decode())
    if response.browsed is not None:
        return response.browsed
    fields = response.data.get("fields", {})
    if fields and not request.stream:
        raise Invalid({f"source.{name}": [why] for name, why in fields.items()})
    if wrong := {name: [fields[name]] for name in ("place_topic", "partition") if name in fields}:
        raise Invalid({name.removeprefix("place_"): why for name, why in wrong.items()})
    raise refusal_of(response)


def _checked(stream: Stream, choice: BrowseChoice) -> int | None:
    """Return the time (ms) from which messages are read, None for none. Raises `Invalid`."""
    faults = _place_faults(stream, choice)
    if not 1 <= choice.limit <= MOST:
        faults["limit"] = [f"Must be 1 to {MOST}"]
    since_ms = _ms(choice.since) if choice.since else None
    if choice.since and since_ms is None:
        faults["since"] = ["Must be a time with a zone (ISO 8601)"]
    if choice.where.strip():
        faults |= _faults_of(stream, choice.where)
    if faults:
        raise Invalid(faults)
    return since_ms


def _place_faults(stream: Stream, choice: BrowseChoice) -> dict[str, list[str]]:
    faults: dict[str, list[str]] = {}
    for name in ("partition", "offset"):
        if not 0 <= (getattr(choice, name) or 0) <= _MOST_OFFSET:
            faults[name] = ["Must be a number from 0"]
    if choice.offset is not None and choice.partition is None:
        faults["partition"] = ["Name the partition of the offset"]
    if choice.topic and not stream.source.get("topic_pattern"):
        faults["topic"] = ["The source of the stream is not a pattern of topics"]
    return faults


def _ms(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
        return None if moment.tzinfo is None else round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def _faults_of(stream: Stream, where: str) -> dict[str, list[str]]:
    schema = schema_of(stream.schema)
    kinds: Any = {} if schema is None else schema.kinds
    if len(where) > _LONGEST:
        return {"where": [f"Must have at most {_LONGEST:,} characters"]}
    try:
        computation_of(QueryText({"n": "count(*)"}, where=where), kinds)
    except BadQuery as error:
        return {"where": [error.fields.get("where", str(error))]}
    return {}
