"""Endpoints of alerts: exceeded limits of clusters, and what operators do about them."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router
from pydantic import Field

from controlplane.alerts import actions
from controlplane.alerts.listing import AlertFilters, alert_by_id, alerts_listing
from controlplane.alerts.states import status_of, title_of, unit_of
from controlplane.api.common.examples import with_examples
from controlplane.api.common.lists import list_parameters, listed
from controlplane.api.common.schemas import RequestBody, below, columns_of, list_of, shown
from controlplane.api.common.security import caller, cluster_of
from controlplane.models import Alert

router = Router(tags=["alerts"])
of_cluster = Router(tags=["alerts"])
_NOTE_EXAMPLE = with_examples({"With a note": {"note": "The producer restarts"}})
_SILENCE_EXAMPLE = with_examples(
    {"For an hour": {"minutes": 60, "reason": "Maintenance of node 5"}}
)


class AlertOut(
    columns_of(  # type: ignore[misc]
        Alert,
        "id subject value worst limit worst_limit node detail since fired_at cleared_at"
        " evaluated_at acknowledged_by acknowledged_at note silenced_by silenced_until"
        " silence_reason",
    )
):
    """An alert; state: firing, recovering, acknowledged, silenced or cleared.

    unit: of value, worst and limits; worst_limit: the limit that held then; node: the index of the
    fullest node, of alerts about its load.
    """

    model_config = shown("id cluster state title value limit unit since")

    cluster: str = below("cluster.slug")
    state: str
    title: str
    unit: str

    resolve_state = staticmethod(lambda row: str(status_of(row, timezone.now())))
    resolve_title = staticmethod(lambda row: title_of(row.subject))
    resolve_unit = staticmethod(lambda row: unit_of(row.subject))


AlertPage = list_of("AlertPage", alerts=AlertOut)


class NoteIn(RequestBody):
    """A note for other operators."""

    note: str = Field("", max_length=actions.MAX_TEXT)


class SilenceIn(RequestBody):
    """The duration of the silence, at most seven days, and its reason."""

    minutes: int = Field(ge=1, le=actions.LONGEST_MINUTES)
    reason: str = Field(max_length=actions.MAX_TEXT)


@router.get("", response=AlertPage, openapi_extra=list_parameters(AlertFilters))
def list_alerts(request: HttpRequest, response: HttpResponse) -> Any:
    """List the alerts of visible clusters, newest first; cleared ones are kept 90 days.

    Query parameters cluster, subject, state (firing, acknowledged, silenced, cleared), cursor,
    limit (up to 1000).
    """
    listing = alerts_listing(caller(request), AlertFilters.of(request.GET))
    return listed(request, response, listing, "alerts")


@of_cluster.get("/{slug}/alerts/{int:pk}", response=AlertOut)
def get_alert(request: HttpRequest, slug: str, pk: int) -> Any:
    """Return one alert of a cluster."""
    return alert_by_id(cluster_of(request), pk)


@of_cluster.post(
    "/{slug}/alerts/{int:pk}/acknowledge", response=AlertOut, openapi_extra=_NOTE_EXAMPLE
)
def acknowledge_alert(request: HttpRequest, slug: str, pk: int, body: NoteIn) -> Any:
    """Record that somebody works on an alert. Requires the role operator on the cluster.

    409 (alert_ended) for a cleared alert.
    """
    actor = caller(request)
    return actions.acknowledge(actor, alert_by_id(cluster_of(request), pk), body.note)


@of_cluster.post(
    "/{slug}/alerts/{int:pk}/silence", response=AlertOut, openapi_extra=_SILENCE_EXAMPLE
)
def silence_alert(request: HttpRequest, slug: str, pk: int, body: SilenceIn) -> Any:
    """Silence an alert for a time, also if it fires again. Requires the role operator.

    409 (alert_ended) for a cleared alert.
    """
    actor = caller(request)
    alert = alert_by_id(cluster_of(request), pk)
    return actions.silence(actor, alert, body.minutes, body.reason)


@of_cluster.post("/{slug}/alerts/{int:pk}/withdraw", response=AlertOut)
def withdraw_alert(request: HttpRequest, slug: str, pk: int) -> Any:
    """Withdraw the acknowledgement and the silence of an alert. Requires the role operator.

    409 (alert_ended) for a cleared alert, (nothing_to_withdraw) without either.
    """
    actor = caller(request)
    return actions.withdraw(actor, alert_by_id(cluster_of(request), pk))
