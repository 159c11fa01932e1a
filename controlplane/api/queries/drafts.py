"""Endpoints of queries that are not submitted yet: preview and explanation."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Status

from controlplane.access.roles import VIEWER
from controlplane.api.common.examples import QUERY_EXAMPLES, with_examples
from controlplane.api.common.schemas import dataclass_schema, fields_of, response_of, shown
from controlplane.api.common.security import caller, cluster_of, open_to
from controlplane.api.queries.schemas import QueryCheckIn
from controlplane.explain.drafts import explanation
from controlplane.explain.drafts import preview as previews
from controlplane.explain.drafts.explanation import DraftExplanation
from controlplane.explain.drafts.values import Preview, PreviewWindow
from controlplane.queries.spec import spec_of

router = Router(tags=["queries"])
_QUERY_EXAMPLE = with_examples(QUERY_EXAMPLES)


class PreviewWindowOut(fields_of(PreviewWindow)):  # type: ignore[misc]
    """A window of one key; errors has for an aggregate without a value the reason."""

    model_config = shown("start key values")


class QueryPreviewOut(fields_of(Preview, without="windows")):  # type: ignore[misc]
    """The newest windows of a query over the newest records of its streams, newest first.

    window_count: of all its windows. late: records older than the lateness; rejected: records that
    do not match their schema. is_partial: true if a limit left out records. Windows that began
    before the first evaluated record are incomplete.
    """

    windows: list[PreviewWindowOut]


@router.post("/{slug}/queries/preview", response=QueryPreviewOut, openapi_extra=_QUERY_EXAMPLE)
def preview_query(request: HttpRequest, slug: str, body: QueryCheckIn) -> Any:
    """Evaluate a query on the newest records of its streams; nothing is stored or placed.

    A worker evaluates up to 20,000 records for 5 s at most. 409: no_records, query_failed,
    cancelled, out_of_time or out_of_memory. 503: preview_away if no worker is free, or log_away.
    """
    actor, cluster = caller(request), cluster_of(request)
    return response_of(QueryPreviewOut, previews.preview(actor, cluster, spec_of(body)))


@router.post("/{slug}/queries/preview/cancel", response={204: None})
def cancel_preview(request: HttpRequest, slug: str) -> Any:
    """Cancel the preview that the caller waits for; without one, change nothing."""
    previews.cancel(caller(request), cluster_of(request))
    return Status(204, None)


@router.post(
    "/{slug}/queries/explain",
    response=dataclass_schema(DraftExplanation),
    openapi_extra=_QUERY_EXAMPLE,
    auth=open_to(VIEWER),
)
def explain_query(request: HttpRequest, slug: str, body: QueryCheckIn) -> Any:
    """Return what a query would read, share and keep, and the node that it would get now."""
    answer = explanation.explain(cluster_of(request), spec_of(body))
    return response_of(dataclass_schema(DraftExplanation), answer)
