"""Rows of alerts: state, value against its limit, since when, and the link that explains it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.urls import reverse
from django.utils.http import urlencode

from controlplane import numbers
from controlplane.alerts.measures import AlertMeasure
from controlplane.alerts.states import AlertStatus, is_of_measure, status_of, title_of, unit_of
from controlplane.explain import Explanation, subject_of_measure
from controlplane.models import Alert
from controlplane.numbers import clock, raised
from dashboard.figures.parts import ms
from dashboard.frame.headline import NO_CAUSE, Headline
from dashboard.frame.tile import Chip

CHIPS: Final = {
    AlertStatus.FIRING: Chip("Firing", "bad"),
    AlertStatus.RECOVERING: Chip("Recovering", "warn", "clock"),
    AlertStatus.ACKNOWLEDGED: Chip("Acknowledged", "warn", "ok"),
    AlertStatus.SILENCED: Chip("Silenced", "", "clock"),
    AlertStatus.CLEARED: Chip("Cleared", "good"),
    AlertStatus.PENDING: Chip("Pending", ""),
}
ORDER: Final = (
    AlertStatus.FIRING, AlertStatus.RECOVERING, AlertStatus.ACKNOWLEDGED, AlertStatus.SILENCED,
    AlertStatus.CLEARED, AlertStatus.PENDING,
)  # fmt: skip
# The range around an explained alert that has been cleared.
_MARGIN: Final = timedelta(minutes=10)


@dataclass(frozen=True)
class AlertRow:
    """An alert in words; `subject`: what Explain opens, at the address `explain`."""

    alert: Alert
    status: AlertStatus
    title: str
    value: str
    worst: str
    worst_limit: str
    limit: str
    since: str
    checked: str
    held: str
    handled: str
    subject: str
    explain: str

    @property
    def chip(self) -> Chip:
        """Return the state of the alert."""
        return CHIPS[self.status]

    @property
    def is_firing(self) -> bool:
        """Return True if the value is beyond its limit, and nobody acknowledged or silenced it."""
        return self.status is AlertStatus.FIRING

    @property
    def is_open(self) -> bool:
        """Return True if the alert is not cleared."""
        return self.status is not AlertStatus.CLEARED


def alert_rows(alerts: Iterable[Alert], now: datetime) -> list[AlertRow]:
    """Return the rows of alerts, by state and then by age."""
    rows = [alert_row(alert, now) for alert in alerts]
    return sorted(rows, key=lambda row: (ORDER.index(row.status), row.alert.since))


def alert_row(alert: Alert, now: datetime) -> AlertRow:
    """Return the row of an alert that has fired."""
    status, unit = status_of(alert, now), unit_of(alert.subject)
    values = {
        name: numbers.value_text(getattr(alert, name), unit) if unit else ""
        for name in ("value", "worst", "limit", "worst_limit")
    }
    return AlertRow(
        alert=alert,
        status=status,
        title=_title(alert),
        since=clock(alert.since, now),
        checked=f"{alert.evaluated_at:%H:%M:%S}" if alert.evaluated_at else "",
        held=numbers.duration((alert.within_since or alert.cleared_at or now) - alert.since),
        handled=_handled(alert, status, now),
        subject=_subject(alert),
        explain=explain_address(alert),
        **values,
    )


def _title(alert: Alert) -> str:
    node = (
        f", node {alert.node}"
        if alert.subject == AlertMeasure.LOAD and alert.node is not None
        else ""
    )
    return f"{title_of(alert.subject)}{node}"


def _handled(alert: Alert, status: AlertStatus, now: datetime) -> str:
    """Return who handles the alert, or until when it is silent."""
    if status is AlertStatus.CLEARED:
        return f"cleared {clock(alert.cleared_at, now)}" if alert.cleared_at else "cleared"
    parts = []
    if alert.acknowledged_at is not None:
        when = clock(alert.acknowledged_at, now)
        parts.append(f"by {alert.acknowledged_by} {when}")
    if status is AlertStatus.SILENCED and alert.silenced_until is not None:
        until = clock(alert.silenced_until, now)
        parts.append(f"silent until {until} by {alert.silenced_by}")
    return " · ".join(parts)


def explain_address(alert: Alert) -> str:
    """Return the address of the cluster's page that explains an alert at its time.

    The range is that of the alert if it has been cleared. A failed application has no measure to
    explain: the page of the cluster shows its health.
    """
    values: dict[str, str | int] = {}
    if alert.cleared_at is not None:
        start, end = alert.since - _MARGIN, alert.cleared_at + _MARGIN
        values = {"from": ms(start), "to": ms(end)}
    if subject := _subject(alert):
        values["explain"] = subject
    address = reverse("cluster", args=[alert.cluster.slug])
    return f"{address}?{urlencode(values)}" if values else address


def _subject(alert: Alert) -> str:
    """Return what Explain opens for an alert, at its time; "" for one about no measure."""
    if not is_of_measure(alert.subject):
        return ""
    moment = alert.evaluated_at if alert.cleared_at is None else alert.fired_at or alert.since
    return str(subject_of_measure(alert.subject, alert.node, moment))


def alert_headline(row: AlertRow, explanation: Explanation | None) -> Headline:
    """Return the value of an alert against its limit, since when, its cause, and who handles it."""
    alert, chip = row.alert, row.chip
    since = f"since {row.since} UTC, held {row.held}"
    if row.value:
        worst, now = f"worst {row.worst}", f"{row.value} at {row.checked}, limit {row.limit}"
        if row.worst_limit != row.limit:
            moved = alert.subject == AlertMeasure.REPLICATION
            worst += f", limit {row.worst_limit} then"
            worst += " (it follows the best reachable value)" if moved else ""
        elif not row.is_open:
            worst += f", limit {row.worst_limit}"
        what = f"{f'{now}; {worst}' if row.is_open else raised(worst)}, {since}"
    else:
        what = f"{alert.detail or 'The Spark application failed'}, {since}"
    handled = row.handled
    if handled and alert.note:
        handled += f": {alert.note}"
    if handled and alert.silence_reason and row.status is AlertStatus.SILENCED:
        handled += f" ({alert.silence_reason})"
    if explanation is None:
        return Headline(what, handled, chip.grade)
    why = f"{raised(handled)}." if handled else ""
    # An alert that has ended needs no cause.
    unknown = NO_CAUSE if row.is_open else ""
    return Headline(what, why, chip.grade).explained(explanation.ranked, unknown)
