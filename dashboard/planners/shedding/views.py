"""Load shedding: the ladder of a cluster, what it keeps, drills, weights and floors."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.http import HttpResponse, JsonResponse
from django.utils import timezone
from django_htmx.http import HttpResponseClientRefresh

from controlplane.alerts.measures import AlertMeasure
from controlplane.alerts.readings import ClusterReadings, cluster_readings
from controlplane.catalog.query_checks import FLOOR, WEIGHT
from controlplane.catalog.query_settings import set_shedding
from controlplane.errors import Conflict, Fields, Invalid
from controlplane.models import Cluster, Query
from controlplane.numbers import MISSING, compact, percent, ratio, seconds
from controlplane.planners.shedding import activation, arming
from controlplane.planners.shedding.drill import Drill, LeastKept, run_drill
from controlplane.planners.shedding.feasible import feasible_inputs
from controlplane.planners.shedding.measured import MeasuredDrops, kept_parts
from controlplane.planners.shedding.report import LadderReport, ladder_report
from dashboard.dialog_forms import cluster_dialog
from dashboard.figures.parts import Figure
from dashboard.figures.shedding import drill_figure, feasible_figure
from dashboard.forms import finite, moment, optional, read, read_some, whole
from dashboard.frame.readings import tile_of
from dashboard.frame.tile import Tile
from dashboard.guards import PageRequest, cluster_page
from dashboard.planners.shedding.history import history_context
from dashboard.planners.shedding.status import (
    FACTOR,
    SHOWN_QUERIES,
    cost_rows,
    kept_now,
    kept_text,
    level_of,
    rung_rows,
    status_of,
    with_capacity_limit,
)
from dashboard.responses import cluster_change, refusal_text, render_page
from dashboard.templatetags.weir import age
from dashboard.thresholds import UNKNOWN, WARN

# Minutes for which a rung can be activated, on the page.
DURATIONS: Final = {5: "5 minutes", 15: "15 minutes", 60: "1 hour", 480: "8 hours"}
# Minutes after which a disarmed ladder is armed again, on the page.
PAUSES: Final = {0: "never", 60: "in 1 hour", 480: "in 8 hours", 1440: "in 1 day"}
# Ranges for drills that the page offers.
DRILLS: Final = {
    "Last 3 h": timedelta(hours=3), "Last 24 h": timedelta(hours=24),
    "Last 7 days": timedelta(days=7),
}  # fmt: skip
# The queries whose weights one form changes.
MOST_EDITED: Final = 200


@cluster_page
def index(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Show the ladder of a cluster; the charts are drawn by the browser from `charts`.

    `from`, `to`: the range of a drill.
    """
    report = ladder_report(cluster)
    context = _live_context(cluster, report) | history_context(cluster)
    context |= _drill_context(request, cluster)
    context["edited"] = _edited(cluster)
    return render_page(request, "shedding.html", context)


@cluster_page
def live(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return the parts that change with each sample; the page is loaded again if a ladder came."""
    report = ladder_report(cluster)
    if bool(report.missing) != (request.htmx.target == "shedding-empty"):
        return HttpResponseClientRefresh()
    if report.missing:
        # The page has none of the parts.
        return HttpResponse()
    return render_page(request, "_shedding_live.html", _live_context(cluster, report))


@cluster_page
def charts(request: PageRequest, cluster: Cluster) -> JsonResponse:
    """Return the charts as JSON: feasible inputs, and the drill of the range, if there is one."""
    figures: dict[str, Figure] = {}
    report = ladder_report(cluster)
    if report.ladder is not None and report.given is not None:
        inputs = feasible_inputs(cluster, report.ladder, report.given)
        if inputs is not None:
            figures["feasible"] = feasible_figure(inputs, len(report.rungs) - 1, report.factor)
    drill = _drill_context(request, cluster)["drill"]
    if drill is not None:
        figures["drill"] = drill_figure(drill)
    return JsonResponse({"figures": figures})


@cluster_dialog("shedding", form="_shedding_arm_form.html", field="reason")
def arm(request: PageRequest, cluster: Cluster) -> str:
    """Compute the ladder and arm it."""
    row = arming.arm(request.actor, cluster, request.POST.get("reason", ""))
    return (
        f"A shedding plan of {len(row.value.rungs)} drop levels is enabled from the next batch on."
    )


@cluster_dialog(
    "shedding", form="_shedding_disarm_form.html", field="reason",
    context=lambda _: {"pauses": PAUSES},
)  # fmt: skip
def disarm(request: PageRequest, cluster: Cluster) -> str:
    """Disarm the ladder, or change when it is armed again."""
    minutes = read(request.POST, minutes=optional(whole, 0))["minutes"]
    row = arming.disarm(request.actor, cluster, request.POST.get("reason", ""), minutes)
    if row is not None:
        return f"No shedding plan is enabled until {row.arm_at:%Y-%m-%d %H:%M} UTC."
    return "No shedding plan is enabled: from the next batch on, nothing is dropped by it."


@cluster_dialog(
    "shedding", form="_shedding_activate_form.html", field="reason",
    context=lambda _: {"durations": DURATIONS},
)  # fmt: skip
def activate(request: PageRequest, cluster: Cluster) -> str:
    """Activate a rung for a bounded time."""
    values = read(request.POST, rung=whole, minutes=whole)
    reason = request.POST.get("reason", "")
    row = activation.activate(request.actor, cluster, values["rung"], values["minutes"], reason)
    return f"Drop level {values['rung']} is active until {row.active_until:%H:%M} UTC."


@cluster_change("shedding")
def release(request: PageRequest, cluster: Cluster) -> str:
    """End the activation of a rung."""
    activation.release(request.actor, cluster, request.POST.get("reason", ""))
    return "No drop level is activated: the pipeline chooses by the load alone."


@cluster_dialog(
    "shedding", form="_shedding_weights_form.html", field="reason",
    context=lambda cluster: {"edited": _edited(cluster)},
    refused=lambda shown: {"edited": _submitted(shown)},
)  # fmt: skip
def set_weights(request: PageRequest, cluster: Cluster) -> str:
    """Change the weights and floors that differ from the present ones."""
    values = request.POST.dict()
    changes, faults = _changes(cluster, values)
    if faults:
        raise Invalid(faults)
    reason = str(values.get("reason", ""))
    with transaction.atomic():
        for query, weight, floor in changes:
            _set(request, query, (weight, floor), reason)
    count = len(changes)
    word = "query is" if count == 1 else "queries are"
    return f"Weight or minimum of {count} {word} changed. Compute the plan again to use them."


def _set(request: PageRequest, query: Query, values: tuple[float, float], reason: str) -> None:
    """Change a query; errors are by the fields of the form."""
    try:
        set_shedding(request.actor, query, *values, reason)
    except Invalid as invalid:
        names = {WEIGHT: "weight", FLOOR: "floor"}
        fields = {f"{names[name]}-{query.pk}": why for name, why in invalid.fields.items()}
        raise Invalid(fields) from None


def _live_context(cluster: Cluster, report: LadderReport) -> dict[str, Any]:
    shown = report.queries[:SHOWN_QUERIES]
    week = kept_parts(cluster, [query.id for query in shown], timezone.now()) if shown else {}
    readings = cluster_readings(cluster)
    factor_grade = UNKNOWN if report.provisional else FACTOR.grade(report.factor)
    return {
        "report": report,
        "status": with_capacity_limit(status_of(report), report, readings),
        "tiles": ladder_tiles(report, factor_grade, readings),
        "costs": cost_rows(report),
        "rungs": rung_rows(report),
        "queries": [
            (
                query,
                kept_now(report, query),
                [(part, level_of(part)) for part in query.kept],
                _week_cell(week.get(query.id)),
            )
            for query in shown
        ],
        "durations": DURATIONS,
        "pauses": PAUSES,
        "more_queries": max(0, len(report.queries) - SHOWN_QUERIES),
        "other_streams": len(report.given.streams) - 2 if report.given else 0,
    }


def _week_cell(part: MeasuredDrops | None) -> dict[str, Any]:
    """Return what a query kept in the last 7 days: in percent as text, and the records."""
    return {"text": kept_text(part.kept if part is not None else None), "part": part}


def _drill_context(request: PageRequest, cluster: Cluster) -> dict[str, Any]:
    """Return the drill of the range in the URL, and why there is none."""
    values = request.GET.dict()
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    choices = [(name, _minute(now - length)) for name, length in DRILLS.items()]
    shown = {
        "from": values.get("from") or choices[0][1],
        "to": values.get("to") or _minute(now),
    }
    context: dict[str, Any] = {"drill": None, "drill_fault": "", "drill_range": shown}
    context["drill_choices"] = choices
    if not (values.get("from") and values.get("to")):
        return context
    try:
        drill = run_drill(cluster, *_range(shown))
    except (Invalid, Conflict) as refusal:
        return context | {"drill_fault": refusal_text(refusal)}
    return context | {"drill": drill, "drill_tiles": drill_tiles(drill, _least(drill))}


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M}"


def _range(shown: Mapping[str, str]) -> tuple[datetime, datetime]:
    times, faults = read_some(shown, {"from": moment, "to": moment})
    if faults:
        raise Invalid({"to": ["Enter two times, as 2026-01-31T18:00"]})
    return times["from"], times["to"]


def _least(drill: Drill) -> LeastKept | None:
    """Return the query that keeps the least, with its name; None if all keep everything."""
    least = drill.least
    if least is None or least.kept >= 1:
        return None
    name = Query.objects.filter(pk=least.query).values_list("name", flat=True).first()
    return replace(least, name=name or "")


def _running(cluster: Cluster) -> list[Query]:
    rows = cluster.queries.filter(state=Query.State.RUNNING)
    return list(rows.order_by("-shedding_weight", "name")[:MOST_EDITED])


def _edited(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the queries of the form with their weights, and floors in percent."""
    return [
        {
            "query": query,
            "weight": f"{query.shedding_weight:g}",
            "floor": f"{100 * query.shedding_floor:g}",
        }
        for query in _running(cluster)
    ]


def _submitted(shown: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the form with the submitted values and their faults."""
    rows = []
    for row in shown["edited"]:
        fields = {name: f"{name}-{row['query'].pk}" for name in ("weight", "floor")}
        values = {name: shown["values"].get(field, row[name]) for name, field in fields.items()}
        faults = [
            f"{name.capitalize()}: {message}"
            for name, field in fields.items()
            for message in shown["errors"].get(field, ())
        ]
        rows.append(row | values | {"faults": "; ".join(faults)})
    return rows


def _changes(
    cluster: Cluster, values: Mapping[str, str]
) -> tuple[list[tuple[Query, float, float]], Fields]:
    """Return the queries whose submitted values differ, and the faults by field."""
    changes, faults = [], Fields()
    for query in _running(cluster):
        present = query.shedding_weight, query.shedding_floor
        readers = {
            f"weight-{query.pk}": optional(finite, present[0]),
            f"floor-{query.pk}": optional(lambda text: finite(text) / 100, present[1]),
        }
        given, wrong = read_some(values, readers)
        faults |= wrong
        if not wrong and tuple(given.values()) != present:
            changes.append((query, *given.values()))
    return changes, faults


def ladder_tiles(report: LadderReport, factor_grade: str, readings: ClusterReadings) -> list[Tile]:
    """Return the tiles of a ladder; `factor_grade`: of its input factor."""
    if report.ladder is None or report.kept is None:
        return []
    drift = report.drift
    return [
        Tile("Input factor", ratio(report.factor), "",
             f"{compact(report.input_per_s)}/s of {compact(report.capacity_per_s)}/s "
             + ("at assumed costs" if report.provisional else "by processing time"),
             "lower bound of the real one" if report.provisional else "limit 1.00",
             report.factor, 1.0, grade=factor_grade),
        replace(tile_of(readings, AlertMeasure.LOAD), link=""),
        Tile("Active drop level", MISSING if report.rung is None else str(report.rung),
             f"of {len(report.ladder.rungs)}", _position(report),
             f"steps down after {seconds(report.hold_s)} below",
             grade=WARN if report.position else ""),
        Tile("Input kept", percent(report.kept.input), "",
             f"quality lost {percent(report.kept.quality_lost)}", "now, all streams",
             report.kept.input, top=1.0),
        Tile("Plan age", age(report.set_at) if report.armed else MISSING, "",
             f"mix {percent(drift.mix)}, costs {percent(drift.costs)} off" if drift
             else "computed for this page", f"compute again at {percent(report.tolerated)}"),
    ]  # fmt: skip


def _position(report: LadderReport) -> str:
    if not report.armed:
        return "not enabled"
    return "not reported yet" if report.position is None else f"at level {ratio(report.position)}"


def drill_tiles(drill: Drill, least: LeastKept | None) -> list[Tile]:
    """Return the tiles of a drill; `least`: the query that keeps least, None if all keep all."""
    return [
        Tile("Time above capacity", seconds(drill.above_s), "",
             f"largest input factor {ratio(drill.largest_factor)}"),
        Tile("Input dropped", percent(drill.dropped_share), "",
             f"{compact(drill.dropped)} of {compact(drill.arrived)} records"),
        Tile("Quality lost", percent(drill.quality_lost), "", "weighted, over the range"),
        Tile("Level changes", f"{len(drill.changes):,}", "",
             f"periods of {seconds(drill.seconds)}"),
        Tile("Least kept", percent(least.kept if least else 1.0), "",
             f"{least.name}, {seconds(least.seconds)}" if least else "all queries",
             f"minimum {percent(least.floor)}" if least and least.floor else "no minimum"),
    ]  # fmt: skip
