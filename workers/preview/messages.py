"""The work of browsing a source: find records, decode and filter them in a child with limits."""

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from django.conf import settings

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
from controlplane.wire.errors import WireError
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.schema import StreamSchema
from controlplane.wire.sources.files import FileSource
from controlplane.wire.sources.kinds import source_from_text
from controlplane.wire.topics.base import StreamSource
from workers.pipeline.engine.evaluation.evaluator import holds
from workers.pipeline.engine.failures.fault import QueryFault
from workers.pipeline.routing.compilation import read_columns
from workers.pipeline.sources.browse import BrowsedChunk, BrowsePlace, FoundRecords, StreamKey
from workers.pipeline.sources.cluster_sources import module_of
from workers.pipeline.sources.files.browse import sample
from workers.pipeline.split_nodes.projection import DeadLetterBuffer, Projection
from workers.preview.records import entry_of, records_of

# Messages that are read for a page: as many as it shows, or these to filter.
_FILTERED: Final = 2_000
# Characters of a key and a value that are shown.
_TEXT, _KEY = 4_000, 200
_STREAM: Final = 1


def run(body: str) -> None:
    """Browse a source and send the response; skip a request that was cancelled."""
    request = BROWSE.validate_json(body)
    cluster = Cluster.objects.filter(pk=request.cluster).first()
    if cluster is None or not is_wanted(cluster, request):
        return
    try:
        response = PreviewResponse(topic=_browsed(cluster, request))
    except Unwanted:
        return
    except Exhausted as error:
        data = {"limit": error.limit, "used": error.used}
        response = PreviewResponse(code=error.code, text=str(error), data=data)
    except (QueryFault, ChildDied) as error:
        response = PreviewResponse(code="query_failed", text=str(error))
    except WireError as error:
        response = PreviewResponse(code="log_away", text=f"The source cannot be read: {error}")
    answer(cluster, request, response)


def _browsed(cluster: Cluster, request: BrowseRequest) -> BrowsedTopic:
    source, row = source_from_text(request.source), json.loads(request.schema)
    if not row and isinstance(source, FileSource):
        return run_in_child(
            lambda _: BrowsedTopic([], 0, 0, b64encode(sample(source)).decode()),
            preview_limits(),
            lambda _: is_wanted(cluster, request),
        )
    schema = StreamSchema.from_text(request.schema) if row else None
    place = _place(request)
    records = found_records(source, schema, place, cluster, request.stream)
    return run_in_child(
        lambda _: _shown(schema, request, place, records),
        preview_limits(),
        lambda _: is_wanted(cluster, request),
    )


def found_records(
    source: StreamSource,
    schema: StreamSchema | None,
    place: BrowsePlace,
    cluster: Cluster,
    stream: int,
) -> FoundRecords:
    """Return records of a source of a stream, 0 for none yet.

    Raises `WireError` if its place does not answer.
    """
    key = StreamKey(cluster.slug, stream, settings.RESULTS_URL)
    records: FoundRecords = module_of(source, "browse").find(source, schema, place, key)
    return records


def _place(request: BrowseRequest) -> BrowsePlace:
    count = _FILTERED if request.where else request.limit
    return BrowsePlace(
        count, request.partition, request.offset, request.since_ms, bool(request.where),
        request.topic,
    )  # fmt: skip


def _shown(
    schema: StreamSchema | None, request: BrowseRequest, place: BrowsePlace, records: FoundRecords
) -> BrowsedTopic:
    """Return the messages that a condition selects, newest first; runs in the child."""
    selected: list[BrowsedMessage] = []
    for item in records.chunks():
        matching: Sequence[int] = range(len(item.chunk.offsets))
        if request.where and schema is not None:
            decoded = item.chunk.decoded
            matching = decoded.places[_matches(decoded.records, schema, request.where)].tolist()
        selected += [_message(item, row) for row in matching]
    newest = sorted(selected, key=lambda m: (m.sent_at, m.topic, m.partition, m.offset))
    kept = newest[: request.limit] if place.is_from_start else newest[-request.limit :]
    return BrowsedTopic(kept[::-1], records.count, len(selected))


def _message(item: BrowsedChunk, row: int) -> BrowsedMessage:
    chunk = item.chunk
    return BrowsedMessage(
        item.partition, int(chunk.offsets[row]), moment_of(chunk.times_ms[row]),
        item.keys[row][:_KEY], item.texts[row][:_TEXT], chunk.decoded.faults.get(row, ""),
        item.topic,
    )  # fmt: skip


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
