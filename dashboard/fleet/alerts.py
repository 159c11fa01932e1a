"""Pages of alerts: their history with filters, one alert, and what operators do about them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import wraps
from typing import Any, Final

from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django_htmx.http import HttpResponseClientRedirect, trigger_client_event

from controlplane.access.roles import OPERATOR, require
from controlplane.alerts import actions
from controlplane.alerts.listing import AlertFilters, alert_by_id, alert_counts, alerts_listing
from controlplane.alerts.measures import AlertMeasure
from controlplane.alerts.readings import cluster_readings
from controlplane.alerts.states import SUBJECTS, AlertStatus, title_of
from controlplane.errors import Conflict, Invalid
from controlplane.explain import Explanation, explain, parse_subject
from controlplane.models import Alert, AuditEntry, Cluster, Execution
from dashboard.clusters.alert_rows import ORDER, AlertRow, alert_headline, alert_row
from dashboard.dialog_forms import faults_by_field
from dashboard.fleet.measure_plot import alert_plot
from dashboard.forms import whole_number
from dashboard.frame.readings import reachable_text
from dashboard.guards import PageRequest, anyone_page, cluster_action, cluster_page
from dashboard.lists import list_filters
from dashboard.responses import notify, notify_refusal, render_list, render_page

PER_PAGE: Final = 50
# The durations of a silence that the form offers, in minutes.
DURATIONS: Final = (
    (30, "30 min"), (60, "1 h"), (240, "4 h"), (1440, "1 day"), (10_080, "7 days"),
)  # fmt: skip
_BY_PEOPLE: Final = ("alert.acknowledge", "alert.silence", "alert.withdraw")
_SHOWN_ENTRIES: Final = 50
# The page reads its parts again after a change.
_CHANGED: Final = "weir:changed"


@anyone_page
def history(request: PageRequest) -> HttpResponse:
    """Render a page of alerts of visible clusters, newest first."""
    filters = list_filters(request, AlertFilters, {"per_page": PER_PAGE})
    now, page = timezone.now(), alerts_listing(request.actor, filters).page
    by_state, by_subject = alert_counts(request.actor)
    context = {
        "filters": filters,
        "page": page,
        "rows": [alert_row(alert, now) for alert in page.rows],
        "states": [(str(status), by_state[status]) for status in ORDER if status in by_state],
        "subjects": [(name, title_of(name), by_subject.get(name, 0)) for name in SUBJECTS],
        "operated": {
            alert.cluster_id for alert in page.rows if request.actor.may(OPERATOR, alert.cluster_id)
        },
    }
    return render_list(request, "alerts.html", "_alerts_list.html", context)


@cluster_page
def detail(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Render one alert with its history."""
    alert = alert_by_id(cluster, pk)
    row = alert_row(alert, timezone.now())
    headline = alert_headline(row, _explanation(cluster, row))
    context = {
        "row": row,
        "headline": replace(headline, what=headline.what + _unmet(cluster, row)),
        "alert": alert,
        "plot": alert_plot(alert, f"worst {row.worst}, limit {row.worst_limit}"),
        "entries": _entries(alert),
        "executions": _executions(alert),
        "operated": {cluster.pk} if request.actor.is_operator else set(),
    }
    return render_list(request, "alert.html", "_alert_live.html", context)


def _unmet(cluster: Cluster, row: AlertRow) -> str:
    """Return that the limit of an open alert cannot be met now, "" if it can."""
    if not row.is_open or row.alert.subject not in set(AlertMeasure):
        return ""
    reading = cluster_readings(cluster)[AlertMeasure(row.alert.subject)]
    return reachable_text(reading) if reading.is_unreachable else ""


def _explanation(cluster: Cluster, row: AlertRow) -> Explanation | None:
    """Return what Explain shows of an alert, None for one about no measure."""
    return explain(cluster, parse_subject(row.subject)) if row.subject else None


def _entries(alert: Alert) -> list[AuditEntry]:
    """Return the audit entries of what people did about an alert, the oldest first."""
    end: datetime = alert.cleared_at or timezone.now()
    rows = AuditEntry.objects.filter(
        cluster=alert.cluster,
        object=f"{alert.cluster.slug}/{alert.subject}",
        action__in=_BY_PEOPLE,
        at__gte=alert.since,
        at__lte=end,
    )
    return list(rows.order_by("at", "pk")[:_SHOWN_ENTRIES])


def _executions(alert: Alert) -> QuerySet[Execution]:
    """Return the executions of proposals that finished during an alert, the oldest first."""
    during = (alert.since, alert.cleared_at or timezone.now())
    rows = Execution.objects.filter(cluster=alert.cluster, finished_at__range=during)
    return rows.order_by("finished_at")[:_SHOWN_ENTRIES]


def _alert_change(change: Callable[..., str]) -> Callable[..., HttpResponseBase]:
    """Return the view of a change of an alert by operators, which returns a message.

    The response to htmx is empty, and the page reads its parts again. A form with errors is
    returned with them.
    """

    @cluster_action
    @wraps(change)
    def view(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
        require(request.actor, OPERATOR, cluster)
        alert = alert_by_id(cluster, pk)
        url = reverse("alert", args=[cluster.slug, pk])
        try:
            text = change(request, alert)
        except Invalid as refusal:
            if request.htmx:
                return _form(request, alert, change.__name__, refusal)
            notify_refusal(request, refusal)
            return redirect(url)
        except Conflict as refusal:
            notify_refusal(request, refusal)
            return HttpResponseClientRedirect(url) if request.htmx else redirect(url)
        if request.htmx:
            return trigger_client_event(HttpResponse(status=200), _CHANGED, {"text": text})
        notify(request, text)
        return redirect(url)

    return view


@_alert_change
def acknowledge(request: PageRequest, alert: Alert) -> str:
    """Acknowledge the alert, with the note of the form."""
    actions.acknowledge(request.actor, alert, request.POST.get("note", ""))
    return f"{title_of(alert.subject)} of {alert.cluster.name} is acknowledged."


@_alert_change
def silence(request: PageRequest, alert: Alert) -> str:
    """Silence the alert for the duration of the form: one of the list, or another."""
    text = request.POST.get("minutes", "")
    minutes = whole_number(request.POST.get("other", "") if text == "other" else text)
    # The service rejects 0.
    row = actions.silence(request.actor, alert, minutes or 0, request.POST.get("reason", ""))
    return f"{title_of(alert.subject)} is silent until {row.silenced_until:%Y-%m-%d %H:%M} UTC."


@_alert_change
def withdraw(request: PageRequest, alert: Alert) -> str:
    """Withdraw the acknowledgement and the silence."""
    actions.withdraw(request.actor, alert)
    return f"{title_of(alert.subject)} of {alert.cluster.name} fires again."


@cluster_page
def silence_form(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Render the form of a silence."""
    require(request.actor, OPERATOR, cluster)
    return _form(request, alert_by_id(cluster, pk), "silence")


@cluster_page
def note_form(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Render the form of the note of an acknowledgement."""
    require(request.actor, OPERATOR, cluster)
    return _form(request, alert_by_id(cluster, pk), "acknowledge")


def _form(
    request: PageRequest, alert: Alert, verb: str, refusal: Invalid | None = None
) -> HttpResponse:
    values: dict[str, Any] = request.POST.dict() if refusal is not None else {"note": alert.note}
    context = {
        "row": alert_row(alert, timezone.now()),
        "alert": alert,
        "values": values,
        "errors": faults_by_field(refusal, "reason") if refusal is not None else {},
        "durations": DURATIONS,
        "is_open": alert.state == Alert.State.FIRING,
        "is_acknowledged": alert_row(alert, timezone.now()).status is AlertStatus.ACKNOWLEDGED,
    }
    template = "_alert_silence_form.html" if verb == "silence" else "_alert_note_form.html"
    return render_page(request, template, context, 422 if refusal is not None else 200)
