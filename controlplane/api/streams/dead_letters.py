"""Endpoints of dead letters: lists, export, replay and deletion."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import Query, Router

from controlplane.api.common.lists import BY_CURSOR, listed, with_parameters
from controlplane.api.common.security import caller, cluster_of
from controlplane.api.streams.schemas import (
    ChoiceIn,
    DeadLetterPageOut,
    DeletedOut,
    DeleteIn,
    ReplayIn,
)
from controlplane.errors import Invalid
from controlplane.models import Cluster
from controlplane.records import dead_letters
from controlplane.records.dead_letter_list import (
    DeadLetterFilters,
    DeadLetterListing,
    DeadLetterRow,
    exported,
)
from controlplane.records.dead_letters import DeadLetterSelection
from controlplane.wire.dead_letters import Reason

router = Router(tags=["dead letters"])
FileFormat = Literal["ndjson", "csv"]
# Ninja declares a class here, and calls it a function.
_FORM: Any = Query("ndjson", alias="format")  # type: ignore[type-arg]
_FILTERS: Final[dict[str, Mapping[str, Any]]] = {
    "stream": {"type": "string", "maxLength": 100},
    "reason": {"type": "string", "enum": ["", *map(str, Reason)]},
}
_LIST: Final = with_parameters(_FILTERS | BY_CURSOR)
_TEXT: Final = {"schema": {"type": "string"}}
_EXPORT: Final = with_parameters(_FILTERS) | {
    "responses": {200: {"content": {"application/x-ndjson": _TEXT, "text/csv": _TEXT}}}
}


@router.get("/{slug}/dead-letters", response=DeadLetterPageOut, openapi_extra=_LIST)
def list_dead_letters(request: HttpRequest, response: HttpResponse, slug: str) -> Any:
    """List dead letters, newest first.

    Query parameters stream (name or id), reason (body, future, no_time, schema, unreadable),
    cursor, limit (up to 1000). The newest 10,000 of a cluster are kept, and 16 MiB.
    """
    cluster = cluster_of(request)
    listing = DeadLetterListing(cluster, DeadLetterFilters.of(cluster, request.GET))
    return listed(request, response, listing, "dead_letters", DeadLetterRow.to_json)


@router.get("/{slug}/dead-letters/export", openapi_extra=_EXPORT)
def export_dead_letters(
    request: HttpRequest,
    slug: str,
    form: FileFormat = _FORM,
) -> HttpResponseBase:
    """Return the dead letters as NDJSON or CSV, oldest first.

    Query parameters stream and reason as of the list.
    """
    cluster = cluster_of(request)
    return exported(cluster, DeadLetterFilters.of(cluster, request.GET), form)


@router.post("/{slug}/dead-letters/replay", response=dead_letters.Replayed)
def replay_dead_letters(request: HttpRequest, slug: str, body: ReplayIn) -> Any:
    """Append dead letters again, under the present schemas; appended ones are deleted.

    At most 1,000 at once: `next` is what `after` of a further request takes, null if there is no
    other. Each has an idempotency token of its own: an interrupted request can be repeated, and
    appends nothing twice.
    """
    actor, cluster = caller(request), cluster_of(request)
    return dead_letters.replay(actor, cluster, _choice(cluster, body), body.zone, body.after)


@router.post("/{slug}/dead-letters/delete", response=DeletedOut)
def delete_dead_letters(request: HttpRequest, slug: str, body: DeleteIn) -> Any:
    """Delete dead letters; the total count does not change."""
    actor, cluster = caller(request), cluster_of(request)
    return {"deleted": dead_letters.delete(actor, cluster, _choice(cluster, body), body.reason)}


def _choice(cluster: Cluster, body: ChoiceIn) -> DeadLetterSelection:
    if body.all == any((body.ids, body.stream, body.reason_code)):
        raise Invalid({"ids": ["Give ids, a stream or a reason_code, or else all: true"]})
    named = {"stream": body.stream or "", "reason": body.reason_code or ""}
    return DeadLetterSelection(body.ids, DeadLetterFilters.of(cluster, named))
