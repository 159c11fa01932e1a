"""Endpoints of queries: submission, end, lists and results."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status
from pydantic_core import to_json

from controlplane.access.roles import VIEWER
from controlplane.api.common.examples import QUERY_EXAMPLES, with_examples
from controlplane.api.common.lists import link_next, list_parameters, listed, with_parameters
from controlplane.api.common.schemas import CountOut, PlaceOut, response_of
from controlplane.api.common.security import caller, cluster_of, open_to
from controlplane.api.queries.schemas import (
    CheckOut,
    ColumnOut,
    NamesIn,
    QueriesIn,
    QueryCheckIn,
    QueryIn,
    QueryOut,
    QueryPage,
    SubmittedOut,
    WindowPageOut,
)
from controlplane.catalog.computations import output_columns
from controlplane.catalog.queries import (
    QueryFilters,
    queries_listing,
    query_by_id,
    query_by_name,
    row_of,
)
from controlplane.catalog.query_checks import places
from controlplane.queries.spec import spec_of
from controlplane.results.filters import WINDOW_PARAMETERS, WindowFilters
from controlplane.results.pages import windows_page
from controlplane.results.values import window_row
from controlplane.topology import queries

router = Router(tags=["queries"])
JSON = "application/json"
_QUERY_EXAMPLE = with_examples(QUERY_EXAMPLES)
_WINDOWS = with_parameters(WINDOW_PARAMETERS)
_MANY = with_examples({"Both together": {"queries": list(QUERY_EXAMPLES.values())}})


@router.post("/{slug}/queries", response={201: QueryOut}, openapi_extra=_QUERY_EXAMPLE)
def submit_query(request: HttpRequest, slug: str, body: QueryIn) -> Any:
    """Submit one query; it is pending until a worker has placed it."""
    actor, cluster = caller(request), cluster_of(request)
    query = queries.submit(actor, cluster, spec_of(body))
    return Status(201, QueryOut.of(row_of(query_by_id(cluster, query.pk))))


@router.get("/{slug}/queries", response=QueryPage, openapi_extra=list_parameters(QueryFilters))
def list_queries(request: HttpRequest, response: HttpResponse, slug: str) -> Any:
    """List queries, newest first.

    Query parameters q, state (or live), node, stream, order (name, state, node, window, submitted;
    - before it turns it round), cursor, limit (up to 1000).
    """
    cluster, filters = cluster_of(request), QueryFilters.of(request.GET)
    listing = queries_listing(cluster, filters)
    return QueryPage(**listed(request, response, listing, "queries", QueryOut.of))


@router.post("/{slug}/queries/bulk", response={201: SubmittedOut}, openapi_extra=_MANY)
def submit_queries(request: HttpRequest, slug: str, body: QueriesIn) -> Any:
    """Submit up to 10,000 queries, all or none; errors name the rows."""
    actor, cluster = caller(request), cluster_of(request)
    saved = queries.submit_many(actor, cluster, [spec_of(row) for row in body.queries])
    return Status(201, SubmittedOut(count=len(saved), names=[query.name for query in saved]))


@router.post(
    "/{slug}/queries/check", response=CheckOut, openapi_extra=_QUERY_EXAMPLE, auth=open_to(VIEWER)
)
def check_query(request: HttpRequest, slug: str, body: QueryCheckIn) -> Any:
    """Return the faults of a query with their places, or the columns of its results."""
    checked = queries.checked(cluster_of(request), spec_of(body))
    return CheckOut(
        valid=not checked.fields,
        fields=checked.fields,
        places={
            name: response_of(PlaceOut, place) for name, place in places(checked.fields).items()
        },
        columns=[]
        if checked.computation is None
        else [response_of(ColumnOut, column) for column in output_columns(checked.computation)],
        usable={name: str(kind) for name, kind in checked.usable.items()},
    )


@router.post("/{slug}/queries/end", response=CountOut)
def end_queries(request: HttpRequest, slug: str, body: NamesIn) -> Any:
    """End live queries by name, all or none."""
    actor, cluster = caller(request), cluster_of(request)
    return CountOut(count=queries.end(actor, cluster, body.names, body.reason))


@router.get("/{slug}/queries/{name}", response=QueryOut)
def get_query(request: HttpRequest, slug: str, name: str) -> Any:
    """Return the newest query of that name."""
    return QueryOut.of(row_of(query_by_name(cluster_of(request), name)))


@router.delete("/{slug}/queries/{name}", response=QueryOut)
def end_query(request: HttpRequest, slug: str, name: str) -> Any:
    """End a live query; an ended query does not change."""
    actor, cluster = caller(request), cluster_of(request)
    query = query_by_name(cluster, name)
    if query.state != query.State.ENDED:
        queries.end(actor, cluster, [name])
    return QueryOut.of(row_of(query_by_id(cluster, query.pk)))


@router.get("/{slug}/queries/{name}/results", response=WindowPageOut, openapi_extra=_WINDOWS)
def list_results(request: HttpRequest, slug: str, name: str) -> Any:
    """List the windows of a query, newest first, keys in descending order.

    Query parameters from and to (starts, ISO 8601 or ms; to is not included), key (a JSON array or
    object of the key's columns, or the value of the only one), state (open, final, incomplete),
    order (newest or oldest), cursor, limit (up to 1000). The next page is in next and in Link.
    """
    cluster = cluster_of(request)
    query = query_by_name(cluster, name)
    page = windows_page(cluster, query, WindowFilters.of(request.GET))
    rows = [window_row(window) for window in page.rows]
    body = {"total": None, "next": page.next or None, "windows": rows}
    # Written as it is: checking each of a thousand rows against the schema would take longer than
    # reading them.
    answer = HttpResponse(to_json(body, fallback=str), content_type=JSON)
    if page.next:
        link_next(request, answer, page.next)
    return answer
