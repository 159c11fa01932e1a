"""Dead letters: records that do not fit their stream's schema, listed, exported, appended again."""

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final, Literal

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from ninja import Query, Router

from controlplane.api.security import caller, cluster_of
from controlplane.api.stream_bodies import (
    ChoiceIn,
    DeadLetterOut,
    DeadLetterPageOut,
    DeletedOut,
    DeleteIn,
    ReplayedOut,
    ReplayIn,
)
from controlplane.models import Cluster
from controlplane.selectors.dead_letters import (
    DeadLetterFilters,
    DeadLetterRow,
    dead_letters_page,
    every_row,
)
from controlplane.services import dead_letters
from controlplane.services.dead_letters import Choice

router = Router(tags=["dead letters"])
Form = Literal["ndjson", "csv"]
FIELDS: Final = tuple(DeadLetterOut.model_fields)


@router.get("/{slug}/dead-letters", response=DeadLetterPageOut)
def list_dead_letters(request: HttpRequest, response: HttpResponse, slug: str) -> Any:
    """List dead letters, the newest first.

    Query parameters stream (name or id), reason (body, future, no_time, schema, unreadable),
    cursor, limit (up to 500). The newest 10,000 of a cluster are kept, and 16 MiB.
    """
    caller(request)
    cluster = cluster_of(request)
    page = dead_letters_page(cluster, DeadLetterFilters.of(cluster, request.GET))
    rows = [DeadLetterOut.of(row) for row in page.rows]
    return DeadLetterPageOut(dead_letters=rows, next=str(page.next) if page.next else None)


@router.get("/{slug}/dead-letters/export")
def export_dead_letters(
    request: HttpRequest,
    slug: str,
    form: Literal["ndjson", "csv"] = Query("ndjson", alias="format"),
) -> HttpResponseBase:
    """Return the dead letters as lines of JSON or as CSV, the oldest first.

    Query parameters stream and reason as of the list.
    """
    caller(request)
    cluster = cluster_of(request)
    return export(cluster, DeadLetterFilters.of(cluster, request.GET), form)


@router.post("/{slug}/dead-letters/replay", response=ReplayedOut)
def replay_dead_letters(request: HttpRequest, slug: str, body: ReplayIn) -> Any:
    """Append dead letters again, under the present schemas; those that fit are removed.

    At most 1,000 at once: `more` says that there are others. Each has a stamp of its own, so that
    a request that was cut short is repeated without appending anything twice.
    """
    actor, cluster = caller(request), cluster_of(request)
    return asdict(dead_letters.replay(actor, cluster, _choice(cluster, body), body.zone))


@router.post("/{slug}/dead-letters/delete", response=DeletedOut)
def delete_dead_letters(request: HttpRequest, slug: str, body: DeleteIn) -> Any:
    """Give dead letters up; their number stays counted."""
    actor, cluster = caller(request), cluster_of(request)
    choice = _choice(cluster, body)
    return {"deleted": dead_letters.delete(actor, cluster, choice, body.reason)}


def export(cluster: Cluster, filters: DeadLetterFilters, form: str) -> HttpResponseBase:
    """Return dead letters as a file that is sent while it is read."""
    rows = every_row(cluster, filters)
    lines, kind = (_csv(rows), "text/csv") if form == "csv" else (_ndjson(rows), _NDJSON)
    response = StreamingHttpResponse(lines, content_type=f"{kind}; charset=utf-8")
    name = f"{cluster.slug}-dead-letters.{form}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


_NDJSON: Final = "application/x-ndjson"


def _ndjson(rows: Iterator[DeadLetterRow]) -> Iterator[str]:
    for row in rows:
        yield f"{DeadLetterOut.of(row).model_dump_json()}\n"


def _csv(rows: Iterator[DeadLetterRow]) -> Iterator[str]:
    yield _line(FIELDS)
    for row in rows:
        yield _line([_cell(value) for value in DeadLetterOut.of(row).model_dump().values()])


def _line(cells: Any) -> str:
    sink = io.StringIO()
    csv.writer(sink).writerow(cells)
    return sink.getvalue()


def _cell(value: Any) -> Any:
    # A spreadsheet would take such text for a formula.
    return f"'{value}" if isinstance(value, str) and value[:1] in {"=", "+", "-", "@"} else value


def _choice(cluster: Cluster, body: ChoiceIn) -> Choice:
    named = {"stream": body.stream, "reason": body.reason_code}
    return Choice(tuple(body.ids), DeadLetterFilters.of(cluster, named))
