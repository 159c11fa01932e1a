"""Saved views of the lists: filter text and order under a name, of the caller."""

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import Field

from controlplane.api.common.examples import with_examples
from controlplane.api.common.schemas import RequestBody, columns_of
from controlplane.api.common.security import caller, open_to
from controlplane.clusters.audiences import members
from controlplane.lists import saved_views
from controlplane.models import SavedView
from controlplane.pagination.filter_text import MAX_LENGTH

router = Router(tags=["saved views"], auth=open_to(members))
_EXAMPLE = {"list": "queries", "name": "Hot queries", "filter": "state:live rate>100"}


class ViewIn(RequestBody):
    """A view: the list, a name, its filter text and order; the default opens with the list.

    list: queries, streams, proposals, decisions or audit.
    """

    list: str = Field(max_length=20)
    name: str = Field(max_length=saved_views.MAX_NAME)
    filter: str = Field("", max_length=MAX_LENGTH)
    order: str = Field("", max_length=30)
    is_default: bool = False


class ViewChangeIn(RequestBody):
    """What changes of a view; null leaves a value."""

    name: str | None = Field(None, max_length=saved_views.MAX_NAME)
    filter: str | None = Field(None, max_length=MAX_LENGTH)
    order: str | None = Field(None, max_length=30)
    is_default: bool | None = None


class ViewOut(columns_of(SavedView, "id list name filter order is_default created_at")):  # type: ignore[misc]
    """A saved view of the caller."""


@router.get("", response=list[ViewOut])
def list_views(
    request: HttpRequest,
    list: str = Query("", max_length=20),  # type: ignore[type-arg]  # noqa: A002 - the name of the parameter
) -> Any:
    """Return the caller's views by list and name, at most 50 per list.

    Query parameter list: those of one list.
    """
    return saved_views.saved_views(caller(request), list)


@router.post("", response={201: ViewOut}, openapi_extra=with_examples({"A filter": _EXAMPLE}))
def save_view(request: HttpRequest, body: ViewIn) -> Any:
    """Save a view of the caller."""
    view = saved_views.save_view(
        caller(request), body.list, body.name, body.filter, body.order, is_default=body.is_default
    )
    return Status(201, view)


@router.patch(
    "/{int:pk}", response=ViewOut,
    openapi_extra=with_examples({"The default": {"name": "busy", "is_default": True}}),
)  # fmt: skip
def change_view(request: HttpRequest, pk: int, body: ViewChangeIn) -> Any:
    """Change a view of the caller: its name, filter, order, or whether it is the default."""
    return saved_views.change_view(
        caller(request), pk, name=body.name, filter_text=body.filter, order=body.order,
        is_default=body.is_default,
    )  # fmt: skip


@router.delete("/{int:pk}", response={204: None})
def delete_view(request: HttpRequest, pk: int) -> Any:
    """Delete a view of the caller."""
    saved_views.delete_view(caller(request), pk)
    return Status(204, None)
