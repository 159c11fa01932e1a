"""What operators do about alerts: acknowledge, silence for a time, withdraw both."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import OPERATOR, Actor, require
from controlplane.alerts.states import path_of, severity_of, title_of
from controlplane.errors import Conflict, Invalid
from controlplane.events.publish import announce, event
from controlplane.models import Alert

LONGEST_MINUTES: Final = 7 * 24 * 60
MAX_TEXT: Final = 500


def acknowledge(actor: Actor, alert: Alert, note: str = "") -> Alert:
    """Record that somebody works on an alert: it no longer counts as a cluster that needs you.

    Requires an operator of the cluster. Raises `Forbidden`, `Invalid` by field, and `Conflict`
    (alert_ended) if the alert has been cleared.
    """
    _require_short("note", note)
    values = {
        "acknowledged_by": actor.name, "acknowledged_at": timezone.now(), "note": note.strip(),
    }  # fmt: skip
    return _change(actor, alert, "acknowledge", lambda row: values, note)


def silence(actor: Actor, alert: Alert, minutes: int, reason: str) -> Alert:
    """Silence an alert for up to seven days, also if it clears and fires again meanwhile.

    Requires an operator of the cluster. Raises as `acknowledge`, and `Invalid` without a reason.
    """
    _require_short("reason", reason)
    if not reason.strip():
        raise Invalid({"reason": ["Give a reason: it is kept in the audit log"]})
    if not 1 <= minutes <= LONGEST_MINUTES:
        raise Invalid({"minutes": [f"Must be 1 to {LONGEST_MINUTES:,}, which are 7 days"]})
    values = {
        "silenced_by": actor.name,
        "silenced_until": timezone.now() + timedelta(minutes=minutes),
        "silence_reason": reason.strip(),
    }
    return _change(actor, alert, "silence", lambda row: values, reason)


def withdraw(actor: Actor, alert: Alert) -> Alert:
    """Withdraw the acknowledgement and the silence of an alert.

    Requires an operator of the cluster. Raises `Forbidden`, and `Conflict` (alert_ended) for a
    cleared alert, or (nothing_to_withdraw) without an acknowledgement or silence.
    """

    def values_of(row: Alert) -> dict[str, Any]:
        if row.acknowledged_at is None and row.silenced_until is None:
            text = "The alert is neither acknowledged nor silenced"
            raise Conflict("nothing_to_withdraw", text)
        return {
            "acknowledged_by": "", "acknowledged_at": None, "note": "",
            "silenced_by": "", "silenced_until": None, "silence_reason": "",
        }  # fmt: skip

    return _change(actor, alert, "withdraw", values_of, "")


_STATES: Final = {"acknowledge": "acknowledged", "silence": "silenced", "withdraw": "firing"}


@transaction.atomic
def _change(
    actor: Actor, alert: Alert, verb: str, values_of: Callable[[Alert], dict[str, Any]], reason: str
) -> Alert:
    cluster = alert.cluster
    require(actor, OPERATOR, cluster)
    row = Alert.objects.select_for_update().get(pk=alert.pk)
    if row.state != Alert.State.FIRING:
        raise Conflict("alert_ended", "The alert does not fire: it has been cleared")
    values = values_of(row)
    before = {name: getattr(row, name) for name in values}
    for name, value in values.items():
        setattr(row, name, value)
    row.save(update_fields=list(values))
    subject = f"{cluster.slug}/{row.subject}"
    audit.record(
        actor, f"alert.{verb}", subject, cluster=cluster, reason=reason,
        before=_recorded(before), after=_recorded(values),
    )  # fmt: skip
    text = f"{actor.name}: {_STATES[verb]}, {cluster.name}, {title_of(row.subject)}"
    path = path_of(cluster.slug, row)
    announce(cluster.pk, event(
        "alert", text, pk=row.pk, state=_STATES[verb], url=path, severity=severity_of(row.subject),
    ))  # fmt: skip
    return row


def _recorded(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
    }


def _require_short(field: str, text: str) -> None:
    if len(text) > MAX_TEXT:
        raise Invalid({field: [f"Must have at most {MAX_TEXT} characters"]})
