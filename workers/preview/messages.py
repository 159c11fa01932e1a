"""The work of browsing a topic: read messages, decode and filter them in a child with limits."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Final

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaException, Message

from controlplane.child_processes.errors import ChildDied, Exhausted, Unwanted
from controlplane.explain.drafts.preview import answer, is_wanted
from controlplane.explain.drafts.values import (
    BROWSE,
    BrowsedMessage,
    BrowsedTopic,
    BrowseRequest,
    PreviewResponse,
)
from controlplane.models import Cluster
from controlplane.processes.isolation.child import run_in_child
from controlplane.processes.isolation.limits import preview_limits
from controlplane.telemetry.samples import moment_of
from controlplane.wire.errors import LogUnavailable
from controlplane.wire.log.values import NO_TIME, LogEntry
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.records.record_codec import encode_block
from controlplane.wire.schema import StreamSchema
from controlplane.wire.topics.base import BadSource
from controlplane.wire.topics.clients import (
    consumer_of,
    ends_of,
    messages_between,
    offsets_at,
    partitions_of,
)
from controlplane.wire.topics.registry import prefix_of, registry_of
from controlplane.wire.topics.source import MessageFormat, TopicSource
from workers.pipeline.engine.evaluation.evaluator import holds
from workers.pipeline.engine.failures.fault import QueryFault
from workers.pipeline.routing.compilation import read_columns
from workers.pipeline.sources.topic.decode import decode
from workers.pipeline.sources.topic.messages import Fetched, record_rows, row_text
from workers.pipeline.split_nodes.projection import DeadLetterBuffer, Projection
from workers.preview.records import records_of

_GROUP: Final = "weir-browse"
# Messages that are read for a page: as many as it shows, or these to filter.
_FILTERED: Final = 2_000
# Bytes of messages, and characters of a key and a value that are shown.
_BYTES: Final = 8 * 2**20
_TEXT, _KEY = 4_000, 200
_STREAM: Final = 1
# No record is dated further ahead than this.
_ALWAYS_MS: Final = 2**52


def run(body: str) -> None:
    """Browse a topic and send the response; skip a request that was cancelled."""
    request = BROWSE.validate_json(body)
    cluster = Cluster.objects.filter(pk=request.cluster).first()
    if cluster is None or not is_wanted(cluster, request):
        return
    try:
        response = PreviewResponse(topic=_browsed(cluster, request))
    except Unwanted:
        return
    except (LogUnavailable, KafkaException, BadSource) as error:
        response = PreviewResponse(code="log_away", text=f"The topic cannot be read: {error}")
    except Exhausted as error:
        data = {"limit": error.limit, "used": error.used}
        response = PreviewResponse(code=error.code, text=str(error), data=data)
    except (QueryFault, ChildDied) as error:
        response = PreviewResponse(code="query_failed", text=str(error))
    answer(cluster, request, response)


def _browsed(cluster: Cluster, request: BrowseRequest) -> BrowsedTopic:
    source = TopicSource.from_json(json.loads(request.source))
    with closing(consumer_of(source, _GROUP)) as consumer:
        ranges = _ranges(consumer, source, request)
        messages = messages_between(consumer, source.topic, ranges, _BYTES)
    # Timestamps of messages do not only grow.
    first_ms = request.since_ms or 0
    messages = [message for message in messages if message.timestamp()[1] >= first_ms]
    # The child finds the schemas in what is kept: it asks nobody.
    if source.registry:
        for number in {prefix_of(message.value() or b"") for message in messages} - {None}:
            registry_of(source).definition(number or 0)
    return run_in_child(
        lambda _: _shown(source, request, messages),
        preview_limits(),
        lambda _: is_wanted(cluster, request),
    )


def _ranges(
    consumer: Consumer, source: TopicSource, request: BrowseRequest
) -> dict[int, tuple[int, int]]:
    """Return the offsets to read of each partition: the newest, or the first from a place."""
    topic, chosen = source.topic, request.partition
    numbers = [n for n in partitions_of(consumer, topic) if chosen in (None, n)]
    if not numbers:
        raise BadSource({"partition": f"the topic has no partition {chosen}"})
    ends = ends_of(consumer, topic, numbers)
    count = -(-_FILTERED // len(numbers)) if request.where else request.limit
    if request.offset is None and request.since_ms is None:
        return {n: (max(first, end - count), end) for n, (first, end) in ends.items()}
    starts = dict.fromkeys(numbers, request.offset or 0)
    if request.since_ms is not None:
        starts = offsets_at(consumer, topic, numbers, request.since_ms)
    starts = {n: max(start, ends[n][0]) for n, start in starts.items()}
    return {n: (start, min(start + count, ends[n][1])) for n, start in starts.items()}


def _shown(
    source: TopicSource, request: BrowseRequest, messages: "Sequence[Message[Any, Any]]"
) -> BrowsedTopic:
    """Return the messages that a condition selects, newest first; runs in the child."""
    row = json.loads(request.schema)
    schema = StreamSchema.from_text(request.schema) if row else None
    selected: list[BrowsedMessage] = []
    for number in sorted({message.partition() or 0 for message in messages}):
        own = [message for message in messages if message.partition() == number]
        selected += _of_partition(source, schema, request.where, number, own)
    newest = sorted(selected, key=lambda item: (item.sent_at, item.partition, item.offset))
    first = request.offset is not None or request.since_ms is not None
    kept = newest[: request.limit] if first else newest[-request.limit :]
    return BrowsedTopic(kept[::-1], len(messages), len(selected))


def _of_partition(
    source: TopicSource,
    schema: StreamSchema | None,
    where: str,
    number: int,
    messages: "Sequence[Message[Any, Any]]",
) -> list[BrowsedMessage]:
    fetched = Fetched(
        number,
        [message.offset() or 0 for message in messages],
        [message.value() or b"" for message in messages],
        [message.key() for message in messages],
        [max(0, message.timestamp()[1]) for message in messages],
    )
    empty = {place for place, message in enumerate(messages) if message.value() is None}
    faults: dict[int, str] = {}
    names = [] if schema is None else [n for n in schema.arrow.names if n not in source.metadata]
    rows, _ = record_rows(fetched, source, names, {} if schema else faults)
    if not source.is_decoded or source.format == MessageFormat.STRING:
        rows = [{}] * len(messages)
    matching = set(range(len(messages)))
    if schema is not None:
        decoded = decode(fetched, source, schema)
        faults |= decoded.faults
        if where:
            places = decoded.places[_matches(decoded.records, schema, where)]
            matching = set(places.tolist())
    faults |= dict.fromkeys(empty, "is a message without a value")
    return [_message(fetched, place, rows[place], faults)
            for place in sorted(matching - empty if where else matching)]  # fmt: skip


def _message(
    fetched: Fetched, place: int, row: Mapping[str, Any], faults: Mapping[int, str]
) -> BrowsedMessage:
    key, value = fetched.keys[place], fetched.values[place]
    text = row_text(row) if row else value.decode("utf-8", "replace")
    return BrowsedMessage(
        fetched.partition, fetched.offsets[place], moment_of(fetched.times_ms[place]),
        "" if key is None else key.decode("utf-8", "replace")[:_KEY], text[:_TEXT],
        faults.get(place, ""),
    )  # fmt: skip


def _matches(records: Any, schema: StreamSchema, where: str) -> Any:
    """Return for which records a condition of a query is true. Raises `QueryFault`."""
    computation = computation_of(QueryText({"n": "count(*)"}, where=where), schema.kinds)
    result = np.zeros(records.num_rows, np.bool_)
    if computation.where is None or not records.num_rows:
        return result
    # Queries do not read records without an event time.
    timed = np.flatnonzero(np.asarray(records.column(schema.event_time).is_valid()))
    block = encode_block(records.take(pa.array(timed)), schema.event_time)
    entry = LogEntry("0-0", len(timed), block, NO_TIME, None, _ALWAYS_MS)
    columns = tuple(sorted(read_columns(computation, _STREAM)))
    selected = records_of(Projection(_STREAM, schema, columns), [entry], DeadLetterBuffer())
    result[timed] = holds(selected.evaluator.array(computation.where))
    return result
