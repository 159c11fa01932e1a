"""The page of a stream: headline, forecast, meta-data, split nodes, readers, schema, drops."""

import json
import shlex
from datetime import timedelta
from math import ceil
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils import timezone

from controlplane.catalog.computations import schema_of
from controlplane.catalog.streams import StreamListRow, stream_by_id
from controlplane.errors import Away
from controlplane.models import Cluster, Stream
from controlplane.planners.admission.cluster_forecast import cluster_forecast
from controlplane.planners.admission.long_outlook import NEEDED, PERIODS_AHEAD, long_outlook_of
from controlplane.planners.admission.outlook import (
    HORIZON,
    StreamOutlook,
    outlook_of,
    short_period_s,
)
from controlplane.planners.admission.redirections import redirections_of
from controlplane.planners.admission.stream_report import (
    SplitNodeChange,
    StreamReport,
    stream_report,
)
from controlplane.policies.store import policy_of
from controlplane.records.bodies import Format
from controlplane.records.dead_letter_list import ABOUT
from controlplane.records.examples import example_record
from controlplane.records.kept_samples import sample_of
from controlplane.records.stream_map import candidates
from controlplane.telemetry.arrivals import PERIOD_S, lags
from controlplane.telemetry.sources import SourceStatus, source_status
from controlplane.wire.dead_letters import Reason
from controlplane.wire.schema import kind_text
from controlplane.wire.sources.kinds import source_from_json
from dashboard.figures.stream import LEAST_POINTS, lag_figures, rate_figure
from dashboard.guards import PageRequest, cluster_page
from dashboard.responses import render_page
from dashboard.streams.admission import (
    SHOWN_REDIRECTIONS,
    characteristics_context,
    split_nodes_context,
    what_if_form,
)
from dashboard.streams.detail_rows import headline, tiles
from dashboard.streams.drop_rule_forms import drop_rules_context
from dashboard.streams.losses import stream_losses
from dashboard.thresholds import LOAD

_FIVE_MINUTES: Final = 300
# The time of the chart of the lag.
LAG_SHOWN: Final = timedelta(hours=6)


@cluster_page
def detail(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Show a stream."""
    return stream_page(request, cluster, pk)


def stream_page(request: PageRequest, cluster: Cluster, pk: int, secret: str = "") -> HttpResponse:
    """Render the page of a stream; `secret`: a new token for the command of a first record."""
    row = stream_by_id(cluster, pk)
    report = stream_report(row.stream)
    rows = [item.row for item in report.splits]
    context = _report_context(report) | {"row": row}
    context |= _schema_context(row) | drop_rules_context(row.stream)
    context |= split_nodes_context(cluster, rows) | what_if_form({}, {})
    context |= characteristics_context(row.stream, outlook=report.outlook)
    context["coordinate_columns"] = candidates(row.stream)
    if secret or (request.actor.is_operator and not row.stream.source):
        context |= sending_context(request, row.stream, secret)
    context["redirections"] = redirections_of(row.stream, SHOWN_REDIRECTIONS)
    return render_page(request, "stream.html", context, 201 if secret else 200)


@cluster_page
def live(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Return headline, tiles and split nodes of a stream."""
    stream = stream_by_id(cluster, pk).stream
    return render_page(request, "_stream_live.html", _report_context(stream_report(stream)))


@cluster_page
def charts(request: PageRequest, cluster: Cluster, pk: int) -> JsonResponse:
    """Return the charts of a stream as JSON: hours, the last one, and the lag.

    Until there are enough means of five minutes, those of ten seconds are drawn.
    """
    stream = stream_by_id(cluster, pk).stream
    outlook = _near_outlook(stream)
    redirections = redirections_of(stream, SHOWN_REDIRECTIONS)
    hours, now = long_outlook_of(stream, outlook) or outlook, timezone.now()
    drawn = {"rate": outlook, "hours": hours}
    figures = {name: rate_figure(known, redirections) for name, known in drawn.items()}
    start = now - LAG_SHOWN
    known = lags(cluster, stream.pk, start, _FIVE_MINUTES)
    if len(known) < LEAST_POINTS:
        known = lags(cluster, stream.pk, start, PERIOD_S)
    limit_s = policy_of(cluster).redirect_latency_s
    return JsonResponse({"figures": figures | lag_figures(known, limit_s, (start, now))})


def _near_outlook(stream: Stream) -> StreamOutlook | None:
    """Return the outlook of two minutes, or of three periods of a stream with a short period."""
    forecast = cluster_forecast(stream.cluster)
    outlook = outlook_of(stream, forecast=forecast)
    period_s = short_period_s(stream, outlook)
    if outlook is None or period_s is None:
        return outlook
    horizon = ceil(PERIODS_AHEAD * period_s / outlook.seconds)
    return outlook_of(stream, horizon, forecast) if horizon > HORIZON else outlook


def _report_context(report: StreamReport) -> dict[str, Any]:
    long, losses = report.long_outlook, stream_losses(report.stream)
    return {
        "short_period_s": short_period_s(report.stream, report.outlook),
        "forecast_s": 0 if long is None else long.seconds * len(long.forecast),
        "stream": report.stream,
        "report": report,
        "outlook": report.outlook,
        "own_split": report.own,
        "long": long,
        "needed_s": NEEDED.total_seconds(),
        "headline": headline(report),
        "tiles": [*tiles(report), losses.tile],
        "losses": losses,
        "topic": _topic(report.stream),
        "source_place": source_place(report.stream),
        "split_changes": [_change(report, item) for item in report.splits],
        "subject": f"stream:{report.stream.name}",
    }


def source_place(stream: Stream) -> str:
    """Return what a stream is read from, "" for the log of the cluster."""
    return source_from_json(stream.source).place if stream.source else ""


def _topic(stream: Stream) -> SourceStatus | None:
    """Return how far the topic of a stream is read, None where that is not known."""
    try:
        return source_status(stream) if stream.source else None
    except Away:
        return None


def _change(report: StreamReport, item: SplitNodeChange) -> dict[str, Any]:
    """Return a split node with the widths of its bars, in % of its capacity."""
    row, targets, role = item.row, report.planned.targets, ""
    if row.index in targets:
        role = "planned"
    elif row.index in report.shares:
        # Of a stream with several partitions, others stay.
        role = "leaves" if targets and len(report.shares) == 1 else "reads it"
    return {
        "row": row,
        "after": item.after,
        "share_after": item.share_after,
        "free_after": None if row.capacity is None else row.capacity - item.after,
        "now_width": min(100.0, 100 * (row.share or 0.0)),
        "after_width": min(100.0, 100 * (item.share_after or 0.0)),
        "grade": LOAD.grade(item.share_after),
        "role": role,
    }


def _schema_context(row: StreamListRow) -> dict[str, Any]:
    """Return the context of a stream's schema, with the kinds of columns in queries."""
    schema = row.schema
    columns = [
        {"name": column.name, "type": column.type, "nullable": column.nullable,
         "kinds": kind_text(schema, column.name)}
        for column in (schema.columns if schema else ())
    ]  # fmt: skip
    dead = [(ABOUT[Reason(reason)], count) for reason, count in (row.dead or {}).items()]
    return {"schema": schema, "columns": columns, "dead": dead}


def sending_context(request: PageRequest, stream: Stream, secret: str = "") -> dict[str, Any]:
    """Return how the first records are sent: a command with an example, and the kept sample."""
    schema = schema_of(stream.schema)
    if schema is None:
        return {}
    return {
        "formats": list(Format),
        "command": _command(request, stream, secret, example_record(schema, timezone.now())),
        "kept_sample": sample_of(request.actor, stream),
        "most_mib": settings.MAX_REQUEST_BYTES // 2**20 - 1,
        "secret": secret,
    }


def _command(request: HttpRequest, stream: Stream, secret: str, record: dict[str, Any]) -> str:
    """Return a shell command that appends a record; without a secret it reads $TOKEN."""
    parts = {"slug": stream.cluster.slug, "stream": stream.name}
    url = request.build_absolute_uri(reverse("api:append_records", kwargs=parts))
    body = json.dumps({"records": [record]}, ensure_ascii=False)
    return " \\\n  ".join(
        [
            f"curl -X POST {shlex.quote(url)}",
            f'-H "Authorization: Bearer {secret or "$TOKEN"}"',
            '-H "Content-Type: application/json"',
            f"-d {shlex.quote(body)}",
        ]
    )
