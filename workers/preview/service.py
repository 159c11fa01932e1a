"""The work of a preview: read the log, evaluate in a child with limits, send the response."""

import json

from django.conf import settings

from controlplane.catalog.computations import schema_of
from controlplane.child_processes.errors import ChildDied, Exhausted, Unwanted
from controlplane.explain.drafts.preview import answer, is_wanted
from controlplane.explain.drafts.values import REQUEST, PreviewRequest, PreviewResponse
from controlplane.models import Cluster
from controlplane.processes.isolation.child import run_in_child
from controlplane.processes.isolation.limits import preview_limits
from controlplane.wire.errors import LogUnavailable
from controlplane.wire.log import open_log
from controlplane.wire.query import BadQuery
from controlplane.wire.query_text import QueryText
from workers.preview.evaluation import Draft, QueryFailed, evaluate
from workers.preview.records import NewestEntries, read_newest


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
        newest = _newest(cluster, draft)
        if not newest.entries:
            text = "The log has no record of the query's streams: append some, then preview again"
            return PreviewResponse(code="no_records", text=text)
        computation = draft.computation
        preview = run_in_child(
            lambda _: evaluate(draft, computation, newest),
            preview_limits(),
            lambda _: is_wanted(cluster, request),
        )
        return PreviewResponse(preview=preview)
    except Unwanted:
        return None
    except (LogUnavailable, Exhausted, QueryFailed, BadQuery, ChildDied) as error:
        return _failed(error)


def _failed(error: Exception) -> PreviewResponse:
    """Return the response with the code of an error."""
    match error:
        case LogUnavailable():
            return PreviewResponse(code="log_away", text=f"The log does not respond: {error}")
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
    rows = cluster.streams.filter(pk__in=ids).only("id", "name", "schema")
    schemas = {row.pk: schema for row in rows if (schema := schema_of(row.schema)) is not None}
    return Draft(text, {row.pk: row.name for row in rows if row.pk in schemas}, schemas)


def _newest(cluster: Cluster, draft: Draft) -> NewestEntries:
    log = open_log(cluster.log_url, cluster.slug, settings.REDIS_URL)
    try:
        return read_newest(log, sorted(draft.names))
    finally:
        log.close()
