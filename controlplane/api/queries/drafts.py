"""Endpoints of queries that are not submitted yet: preview and explanation."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Status

from controlplane.access.roles import VIEWER
from controlplane.api.common.examples import QUERY_EXAMPLES, with_examples
from controlplane.api.common.schemas import response_of
from controlplane.api.common.security import caller, cluster_of, open_to
from controlplane.api.queries.draft_schemas import DraftExplanationOut, QueryPreviewOut
from controlplane.api.queries.schemas import QueryCheckIn
from controlplane.explain.drafts import explanation
from controlplane.explain.drafts import preview as previews
from controlplane.queries.spec import spec_of

router = Router(tags=["queries"])
_QUERY_EXAMPLE = with_examples(QUERY_EXAMPLES)


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
    response=DraftExplanationOut,
    openapi_extra=_QUERY_EXAMPLE,
    auth=open_to(VIEWER),
)
def explain_query(request: HttpRequest, slug: str, body: QueryCheckIn) -> Any:
    """Return what a query would read, share and keep, and the node that it would get now."""
    answer = explanation.explain(cluster_of(request), spec_of(body))
    return response_of(DraftExplanationOut, answer)
