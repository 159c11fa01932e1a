"""The page Results: a statement over the views of a cluster, its rows, and logins."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.cache import never_cache

from controlplane.errors import Conflict, Invalid, TryLater
from controlplane.models import Cluster
from controlplane.numbers import result as shown_text
from controlplane.results.database import is_postgres
from controlplane.results.sql import logins
from controlplane.results.sql.columns import NUMBERS
from controlplane.results.sql.files import FORMATS, number_of
from controlplane.results.sql.runs import MAX_ROWS, StatementResult, run_statement
from controlplane.results.sql.statements import LONGEST
from controlplane.results.sql.views import example_of, examples_of, listed_views, schema_of
from controlplane.results.values import plain
from controlplane.wire.language.errors import place_of
from controlplane.wire.language.tree import Kind
from dashboard.figures.parts import Figure
from dashboard.figures.results import DrawnPoint, results_figure
from dashboard.guards import PageRequest, cluster_action, cluster_page
from dashboard.lists import require_known
from dashboard.queries.forms import FormFault
from dashboard.queries.results import SHOWN_KEYS, ResultCell
from dashboard.responses import notify_refusals, render_page

# Rows of the table; files have all.
SHOWN_ROWS: Final = 500
# Views of the page; a search finds others.
SHOWN_VIEWS: Final = 20
FILES: Final = ("csv", "parquet", "arrow")
_PARAMETERS: Final = frozenset({"statement", "view"})
# Columns of views that no chart draws, and how many texts name a line.
_FLAGS: Final = ("final", "kept")
_NAMING: Final = 2
# How long the page waits for the rows of the statement that it offers.
_UNASKED_S: Final = 1.0
_TIMES: Final = ("timestamptz", "timestamp", "date")


@cluster_page
def index(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Show the views of a cluster, and the rows of the statement in the address."""
    require_known(request, _PARAMETERS)
    return _page(request, cluster, {})


@cluster_page
def file(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return the rows of the statement in the address as a file."""
    require_known(request, {"statement", "format"})
    form = request.GET.get("format", "csv")
    if form not in FORMATS:
        raise Invalid({"format": [f"Must be one of {', '.join(FORMATS)}"]})
    try:
        result = run_statement(request.actor, cluster, request.GET.get("statement", ""))
    except (Conflict, TryLater) as refusal:
        raise Invalid({"statement": [str(refusal)]}) from None
    kind, write = FORMATS[form]
    headers = {"Content-Disposition": f'attachment; filename="{cluster.slug}-results.{form}"'}
    return HttpResponse(write(result), content_type=kind, headers=headers)


@never_cache
@cluster_action
def login(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Create a password for other tools; only this response has it."""
    with notify_refusals(request):
        url = logins.make_login(request.actor, cluster)
        expires_at = timezone.now() + logins.VALID_FOR
        return _page(request, cluster, {"url": url, "expires_at": expires_at}, 201)
    return redirect("sql", cluster.slug)


def _page(
    request: PageRequest, cluster: Cluster, more: Mapping[str, Any], status: int = 200
) -> HttpResponse:
    part = request.GET.get("view", "")
    views = listed_views(cluster, part, SHOWN_VIEWS)
    text = request.GET.get("statement", "")
    statement = text or (example_of(views[0]) if views else "")
    context = {
        "views": [(view, example_of(view)) for view in views],
        "part": part,
        "most_views": SHOWN_VIEWS,
        "examples": examples_of(views[0]) if views else [],
        "schema": schema_of(cluster),
        "is_postgres": is_postgres(),
        "connections": logins.MAX_CONNECTIONS,
        "statement": statement,
        "longest": LONGEST,
        "files": FILES,
        "faults": (),
    }
    # Without a statement, the page shows what it would show by a click, if that is soon.
    most_s = None if text else _UNASKED_S
    shown = _rows(request, cluster, statement, most_s) if statement and not more else {}
    if text or "result" in shown:
        context |= shown
    return render_page(request, "sql.html", context | dict(more), status)


def _rows(
    request: PageRequest, cluster: Cluster, text: str, most_s: float | None
) -> dict[str, Any]:
    """Return the rows of a statement, or why there are none; `most_s`: as of `run_statement`."""
    try:
        result = run_statement(request.actor, cluster, text, most_s)
    except Invalid as invalid:
        return {"faults": [_fault(text) for text in invalid.fields["statement"]]}
    except (Conflict, TryLater) as refusal:
        return {"faults": [FormFault("", str(refusal))]}
    numbers = [kind in NUMBERS for kind in result.types]
    return {
        "result": result,
        "columns": list(zip(result.names, result.types, numbers, strict=True)),
        "rows": [
            [_cell(*cell) for cell in zip(result.names, row, numbers, strict=True)]
            for row in result.rows[:SHOWN_ROWS]
        ],
        "most_rows": MAX_ROWS,
        "shown": min(SHOWN_ROWS, len(result.rows)),
        "milliseconds": result.seconds * 1000,
        "figures": {"figures": figures_of(result)},
    }


def _fault(text: str) -> FormFault:
    place = place_of(text)
    return FormFault("", text, place.line, place.marks) if place else FormFault("", text)


def _cell(name: str, value: Any, is_number: bool) -> ResultCell:
    if isinstance(value, datetime):
        return ResultCell(f"{value:%Y-%m-%d %H:%M:%S}", name=name)
    number = number_of(value) if is_number else None
    if number is not None and not isinstance(value, int):
        return ResultCell(shown_text(plain(number, Kind.FLOAT)), is_number, name, str(value))
    return ResultCell(shown_text(value), is_number, name)


def figures_of(result: StatementResult) -> dict[str, Figure]:
    """Return the chart of the numbers by the first column of times, empty without such columns.

    A text column distinguishes lines: of its values those with most rows.
    """
    times = [index for index, kind in enumerate(result.types) if kind in _TIMES]
    named = list(enumerate(zip(result.names, result.types, strict=True)))
    numbers = [index for index, (name, kind) in named if kind in NUMBERS and name not in _FLAGS]
    texts = [index for index, (_, kind) in named if kind == "text"][:_NAMING]
    if not times or not numbers or len(result.rows) < 2:  # noqa: PLR2004 - a line takes two points
        return {}
    lines: dict[str, list[DrawnPoint]] = {}
    for row in result.rows:
        start = row[times[0]]
        if not isinstance(start, datetime):
            continue
        names = " \N{MIDDLE DOT} ".join(shown_text(row[index]) for index in texts)
        for index in numbers if not texts else numbers[:1]:
            point = DrawnPoint(round(start.timestamp() * 1000), number_of(row[index]))
            lines.setdefault(names or result.names[index], []).append(point)
    chosen = sorted(lines, key=lambda name: -len(lines[name]))[:SHOWN_KEYS]
    drawn = {name: sorted(lines[name], key=lambda point: point.start) for name in chosen}
    label = result.names[numbers[0]] if texts else ""
    return {"statement": results_figure(drawn, label)} if drawn else {}
