"""The work of browsing a source: find records, decode and filter them in a child with limits."""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Final

import numpy as np
import pyarrow as pa
from django.conf import settings

from controlplane.child_processes.errors import ChildDied, Exhausted, Unwanted
from controlplane.explain.drafts.preview import answer, is_wanted
from controlplane.explain.drafts.values import (
    BROWSE,
    BrowsedMessage,
    BrowsedSource,
    BrowseRequest,
    PreviewResponse,
)
from controlplane.models import Cluster
from controlplane.processes.isolation.child import run_in_child
from controlplane.processes.isolation.limits import preview_limits
from controlplane.telemetry.samples import moment_of
from controlplane.topology.schemas.samples import MAX_BYTES
from controlplane.wire.errors import WireError
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.schema import StreamSchema
from controlplane.wire.sources.files import FileSource
from controlplane.wire.sources.kinds import source_from_text
from controlplane.wire.topics.base import BadSource, StreamSource
from workers.pipeline.engine.evaluation.evaluator import holds
from workers.pipeline.engine.failures.fault import QueryFault
from workers.pipeline.routing.compilation import read_columns
from workers.pipeline.sources.browse import BrowsedChunk, BrowsePlace, RecordsReader, StreamKey
from workers.pipeline.sources.files.browse import sample
from workers.pipeline.sources.planner import module_of
from workers.pipeline.split_nodes.projection import DeadLetterBuffer, Projection
from workers.preview.records import entry_of, records_of

# Messages that are read for a page: as many as it shows, or these to filter.
_FILTERED: Final = 2_000
# Characters of a key and a value that are shown.
_TEXT, _KEY = 4_000, 200
_STREAM: Final = 1
# Messages from which columns are proposed.
_SAMPLED: Final = 500


def run(body: str) -> None:
    """Browse a source and send the response; skip a request that was cancelled."""
    request = BROWSE.validate_json(body)
    cluster = Cluster.objects.filter(pk=request.cluster).first()
    if cluster is None or not is_wanted(cluster, request):
        return
    try:
        response = PreviewResponse(browsed=_browsed(cluster, request))
    except Unwanted:
        return
    except Exhausted as error:
        limits = {"limit": error.limit, "used": error.used}
        response = PreviewResponse(code=error.code, text=str(error), data=limits)
    except (QueryFault, ChildDied) as error:
        response = PreviewResponse(code="query_failed", text=str(error))
    except WireError as error:
        text = f"The source cannot be read: {error}"
        data = {"fields": error.fields} if isinstance(error, BadSource) else {}
        response = PreviewResponse(code="log_away", text=text, data=data)
    answer(cluster, request, response)


def _browsed(cluster: Cluster, request: BrowseRequest) -> BrowsedSource:
    source, row = source_from_text(request.source), json.loads(request.schema)
    if not row and isinstance(source, FileSource):
        return run_in_child(
            lambda _: BrowsedSource([], 0, 0, b64encode(sample(source)).decode()),
            preview_limits(),
            lambda _: is_wanted(cluster, request),
        )
    schema = StreamSchema.from_text(request.schema) if row else None
    place = _place(request)
    read = reader_of(source, schema, place, cluster, request.stream)
    return run_in_child(
        lambda _: _shown(schema, request, place, read),
        preview_limits(),
        lambda _: is_wanted(cluster, request),
    )


def reader_of(
    source: StreamSource,
    schema: StreamSchema | None,
    place: BrowsePlace,
    cluster: Cluster,
    stream: int,
) -> RecordsReader:
    """Return what reads records of the source of a stream, id 0 for none yet.

    Raises `WireError` if its place does not answer; so does the reader.
    """
    key = StreamKey(cluster.slug, stream, settings.RESULTS_URL)
    reader: RecordsReader = module_of(source, "browse").reader_of(source, schema, place, key)
    return reader


def _place(request: BrowseRequest) -> BrowsePlace:
    count = _FILTERED if request.where else request.limit
    return BrowsePlace(
        count, request.partition, request.offset, request.since_ms, bool(request.where),
        request.topic,
    )  # fmt: skip


def _shown(
    schema: StreamSchema | None, request: BrowseRequest, place: BrowsePlace, read: RecordsReader
) -> BrowsedSource:
    """Return the messages that a condition selects, newest first; runs in the child."""
    selected: list[BrowsedMessage] = []
    count = 0
    for item in read():
        matching: Sequence[int] = range(len(item.chunk.offsets))
        count += len(matching)
        if request.where and schema is not None:
            decoded = item.chunk.decoded
            matching = decoded.places[_matches(decoded.records, schema, request.where)].tolist()
        selected += [_message(item, row) for row in matching]
    newest = sorted(selected, key=lambda m: (m.sent_at, m.topic, m.partition, m.offset))
    kept = (newest[: request.limit] if place.is_from_start else newest[-request.limit :])[::-1]
    cut = [replace(message, text=message.text[:_TEXT]) for message in kept]
    sample = "" if schema else b64encode(_lines(_of_each_partition(newest))).decode()
    return BrowsedSource(cut, count, len(selected), sample)


def _message(item: BrowsedChunk, row: int) -> BrowsedMessage:
    chunk = item.chunk
    return BrowsedMessage(
        item.partition, int(chunk.offsets[row]), moment_of(chunk.times_ms[row]),
        item.keys[row][:_KEY], item.texts[row], chunk.decoded.faults.get(row, ""), item.topic,
    )  # fmt: skip


def _of_each_partition(messages: Sequence[BrowsedMessage]) -> list[BrowsedMessage]:
    """Return the newest messages, as many of each partition: a busy one must not hide others."""
    by_place: dict[tuple[str, int], list[BrowsedMessage]] = {}
    for message in reversed(messages):
        by_place.setdefault((message.topic, message.partition), []).append(message)
    layers = zip_longest(*by_place.values())
    return [message for layer in layers for message in layer if message is not None][:_SAMPLED]


def _lines(messages: Sequence[BrowsedMessage]) -> bytes:
    """Return the records among messages as lines, as many as a sample may have bytes."""
    lines, size = list[bytes](), 0
    for message in messages:
        line = b" ".join(message.text.encode().splitlines()) + b"\n"
        if not message.fault and size + len(line) <= MAX_BYTES:
            lines.append(line)
            size += len(line)
    return b"".join(lines)


def _matches(records: Any, schema: StreamSchema, where: str) -> Any:
    """Return for which records a condition of a query is true. Raises `QueryFault`."""
    computation = computation_of(QueryText({"n": "count(*)"}, where=where), schema.kinds)
    result = np.zeros(records.num_rows, np.bool_)
    if computation.where is None or not records.num_rows:
        return result
    # Queries do not read records without an event time.
    timed = np.flatnonzero(np.asarray(records.column(schema.event_time).is_valid()))
    entry = entry_of(records.take(pa.array(timed)), schema)
    columns = tuple(sorted(read_columns(computation, _STREAM)))
    selected = records_of(Projection(_STREAM, schema, columns), [entry], DeadLetterBuffer())
    result[timed] = holds(selected.evaluator.array(computation.where))
    return result
