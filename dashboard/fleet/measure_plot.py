"""Small charts of a cluster's measures: one mean per minute, against the limit of the policy."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

from controlplane.alerts.measures import KINDS, AlertMeasure, MeasureKind
from controlplane.alerts.readings import LINE_PERIOD, lines_of
from controlplane.explain.units import ValueUnit
from controlplane.explain.values import Series
from controlplane.models import Alert
from dashboard.explain.plot import Plot, plot_of

# What is drawn before an alert and after its end, and the most of a long one.
_MARGIN: Final = timedelta(minutes=15)
_LONGEST: Final = timedelta(hours=12)
_MINUTE_MS: Final = 60_000


def measure_plot(
    kind: MeasureKind,
    values: Sequence[float | None],
    end: datetime,
    limit: float | None,
    finding: str,
    period: timedelta = LINE_PERIOD,
    limits: Sequence[float | None] = (),
) -> Plot | None:
    """Return the drawing of the means of a period that ends at `end`; `finding`: its label.

    `limits`: of a limit that moves, at each mean. None with fewer than two means.
    """
    last = round(end.timestamp() * 1000)
    step = round(period.total_seconds() * 1000) // max(1, len(values))
    times = [last - step * (len(values) - 1 - place) for place in range(len(values))]
    series = Series(
        kind.title,
        ValueUnit(kind.unit),
        times,
        values,
        limit,
        "limit",
        is_lower=kind.is_lower,
        limits=limits,
    )
    return plot_of(series, finding)


def alert_plot(alert: Alert, finding: str) -> Plot | None:
    """Return the measure of an alert from shortly before it until its end, or until now.

    Of an alert that fires for long, the newest part; None for one about no measure.
    """
    if alert.subject not in set(AlertMeasure):
        return None
    now = timezone.now()
    end = now if alert.cleared_at is None else min(now, alert.cleared_at + _MARGIN)
    period = min(end - alert.since + _MARGIN, _LONGEST)
    # Whole minutes, as the means are.
    period = timedelta(milliseconds=_MINUTE_MS * -(-period // timedelta(milliseconds=_MINUTE_MS)))
    measure = AlertMeasure(alert.subject)
    lines = lines_of([alert.cluster], period, end)[alert.cluster_id]
    return measure_plot(
        KINDS[measure], lines.get(measure, ()), end, alert.limit, finding, period,
        limits_of(lines, measure),
    )  # fmt: skip


def limits_of(lines: Mapping[str, Sequence[float | None]], measure: str) -> Sequence[float | None]:
    """Return the limits beside the means of a measure; none where the limit does not move."""
    return lines["replication_limit"] if measure == AlertMeasure.REPLICATION else ()
