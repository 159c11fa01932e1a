"""Bulk actions on queries: end those of a filter, restore ended ones, progress."""

from typing import Any

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from controlplane.api.common.examples import with_examples
from controlplane.api.common.schemas import ReasonIn, RequestBody, columns_of
from controlplane.api.common.security import caller, cluster_of
from controlplane.models import BulkAction
from controlplane.pagination.filter_text import MAX_LENGTH
from controlplane.topology import bulk_actions
from controlplane.topology.queries import MAX_BULK

router = Router(tags=["queries"])
_ACTION = "/{slug}/bulk-actions/{int:pk}"
_END = with_examples({"A filter": {"filter": "state:live rate<1", "confirmed": 120}})
_RESTORE = with_examples({"Two queries": {"names": ["trips", "fares"]}})


class EndMatchingIn(ReasonIn):
    """The filter text of the queries that end, and the number of queries that was confirmed."""

    filter: str = Field(max_length=MAX_LENGTH, pattern=r"\S")
    confirmed: int = Field(ge=1, le=10**9)


class RestoreIn(RequestBody):
    """Names of queries that ended within the last hour."""

    names: list[str] = Field(min_length=1, max_length=MAX_BULK)


class BulkActionOut(
    columns_of(  # type: ignore[misc]
        BulkAction,
        "id kind state filter reason total done failed source requested_by requested_at"
        " finished_at",
    )
):
    """A bulk action; total: the queries at its start, done: the processed ones.

    kind: end or restore; state: running, done or cancelled. failed: queries that could not be
    restored, as their name is in use, or a stream or column is gone. source: the action whose
    queries a restoration submits again.
    """


@router.post("/{slug}/queries/end-matching", response=BulkActionOut, openapi_extra=_END)
def end_matching(request: HttpRequest, slug: str, body: EndMatchingIn) -> Any:
    """End the pending and running queries that a filter text selects.

    A worker ends more than 10,000 of them: the action is running until then. Refused with
    more_queries if the filter selects more than were confirmed.
    """
    actor, cluster = caller(request), cluster_of(request)
    return bulk_actions.end_matching(actor, cluster, body.filter, body.confirmed, body.reason)


@router.post("/{slug}/queries/restore", response=BulkActionOut, openapi_extra=_RESTORE)
def restore_queries(request: HttpRequest, slug: str, body: RestoreIn) -> Any:
    """Restore the newest ended queries with these names, within an hour of their end.

    Each is submitted again with its definition, under the next incarnation: its open windows and
    its state are lost. The results of the ended query stay readable.
    """
    return bulk_actions.restore_named(caller(request), cluster_of(request), body.names)


@router.get(_ACTION, response=BulkActionOut)
def get_action(request: HttpRequest, slug: str, pk: int) -> Any:
    """Return a bulk action with its progress."""
    return bulk_actions.action_by_id(cluster_of(request), pk)


@router.post(f"{_ACTION}/restore", response=BulkActionOut)
def restore_action(request: HttpRequest, slug: str, pk: int) -> Any:
    """Restore the queries that a bulk action has ended, once, within an hour of its end."""
    return bulk_actions.restore(caller(request), cluster_of(request), pk)


@router.post(f"{_ACTION}/cancel", response=BulkActionOut)
def cancel_action(request: HttpRequest, slug: str, pk: int) -> Any:
    """Cancel a running bulk action; queries that are not processed yet stay as they are."""
    return bulk_actions.cancel(caller(request), cluster_of(request), pk)
