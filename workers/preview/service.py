"""The work of a preview: read records, evaluate in a child with limits, send the response."""

import json
from dataclasses import replace
from typing import Final

from django.conf import settings

from controlplane.catalog.computations import schema_of
from controlplane.child_processes.errors import ChildDied, Exhausted, Unwanted
from controlplane.explain.drafts.preview import answer, is_wanted
from controlplane.explain.drafts.values import REQUEST, PreviewRequest, PreviewResponse
from controlplane.models import Cluster
from controlplane.processes.isolation.child import run_in_child
from controlplane.processes.isolation.limits import preview_limits
from controlplane.wire.errors import LogUnavailable, SourceUnavailable, WireError
from controlplane.wire.log import open_log
from controlplane.wire.query import BadQuery
from controlplane.wire.query_text import QueryText
from controlplane.wire.sources.kinds import source_from_json
from workers.pipeline.sources.browse import BrowsePlace, RecordsReader
from workers.preview.evaluation import Draft, QueryFailed, evaluate
from workers.preview.messages import reader_of
from workers.preview.records import MOST_SOURCES, NewestEntries, read_newest, with_sources

# Records of sources that a preview reads.
_OF_SOURCES: Final = 5_000


def run(body: str) -> None:
    """Compute a requested preview and send the response; skip a request that was cancelled."""
    request = REQUEST.validate_json(body)
    cluster = Cluster.objects.filter(pk=request.cluster).first()
    if cluster is not None and is_wanted(cluster, request):
        response = _response(cluster, request)
        if response is not None:
            answer(cluster, request, response)


def _response(cluster: Cluster, request: PreviewRequest) -> PreviewResponse | None:
    """Return the response, None if the request was cancelled meanwhile."""
    draft = _draft(cluster, request)
    try:
        newest, readers = _newest(cluster, draft), _readers(cluster, draft)
        computation = draft.computation
        preview = run_in_child(
            lambda _: evaluate(draft, computation, with_sources(newest, readers, draft.schemas)),
            preview_limits(),
            lambda _: is_wanted(cluster, request),
        )
        if not newest.entries and not preview.records and not preview.rejected:
            text = "The streams of the query have no record yet: append some, then preview again"
            return PreviewResponse(code="no_records", text=text)
        return PreviewResponse(preview=preview)
    except Unwanted:
        return None
    except (WireError, Exhausted, QueryFailed, ChildDied) as error:
        return _failed(error)


def _failed(error: Exception) -> PreviewResponse:
    """Return the response with the code of an error."""
    match error:
        case SourceUnavailable():
            return PreviewResponse(code="log_away", text=f"A source cannot be read: {error}")
        case LogUnavailable():
            return PreviewResponse(code="log_away", text=f"The log does not respond: {error}")
        case WireError() if not isinstance(error, BadQuery):
            return PreviewResponse(code="log_away", text=f"A source cannot be read: {error}")
        case Exhausted():
            data = {"limit": error.limit, "used": error.used}
            return PreviewResponse(code=error.code, text=str(error), data=data)
        case QueryFailed():
            stage = {"stage": error.fault.stage}
            return PreviewResponse(code="query_failed", text=str(error), data=stage)
    return PreviewResponse(code="query_failed", text=str(error))


def _draft(cluster: Cluster, request: PreviewRequest) -> Draft:
    text = QueryText.from_json(json.loads(request.text))
    ids = {*request.left, *text.right}
    rows = cluster.streams.filter(pk__in=ids).only("id", "name", "schema", "source")
    schemas = {row.pk: schema for row in rows if (schema := schema_of(row.schema)) is not None}
    names = {row.pk: row.name for row in rows if row.pk in schemas}
    sources = {row.pk: row.source for row in rows if row.source and row.pk in schemas}
    return Draft(text, names, schemas, sources)


def _newest(cluster: Cluster, draft: Draft) -> NewestEntries:
    log = open_log(cluster.log_url, cluster.slug, settings.REDIS_URL)
    try:
        newest = read_newest(log, sorted(draft.names))
    finally:
        log.close()
    return replace(newest, is_partial=newest.is_partial or len(draft.sources) > MOST_SOURCES)


def _readers(cluster: Cluster, draft: Draft) -> dict[int, RecordsReader]:
    """Return by stream what reads the newest records of its source."""
    chosen = sorted(draft.sources)[:MOST_SOURCES]
    place = BrowsePlace(_OF_SOURCES // max(1, len(chosen)), is_shared=True)
    return {
        stream: reader_of(
            source_from_json(draft.sources[stream]), draft.schemas[stream], place, cluster, stream
        )
        for stream in chosen
    }
