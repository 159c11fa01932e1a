"""Events of a cluster in a time range: plans that took effect, and limits that were exceeded."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Q
from django.urls import reverse

from controlplane.alerts.measures import KINDS, AlertMeasure
from controlplane.catalog.routing_versions import AppliedPlan, plans_between
from controlplane.explain import SubjectKind, subject_of_measure
from controlplane.models import Alert, Cluster
from dashboard.figures.parts import PlanMark, ms
from dashboard.time_range import TimeRange

# More of them than this are unreadable, in a chart and on the strip.
MOST: Final = 40
# Marks closer than this part of the range would overlap.
_APART: Final = 8


@dataclass(frozen=True)
class Excess:
    """A limit that was exceeded from `since` to `until`, None if it still is.

    `subject`: what Explain opens, as it was first exceeded.
    """

    label: str
    text: str
    since: datetime
    until: datetime | None
    subject: str


def excesses_between(cluster: Cluster, start: datetime, end: datetime) -> list[Excess]:
    """Return the exceeded limits of a time range, oldest first."""
    rows = Alert.objects.filter(
        Q(cleared_at=None) | Q(cleared_at__gt=start), cluster=cluster, since__lt=end
    ).exclude(state=Alert.State.PENDING)
    return [_excess(row) for row in rows.order_by("-since", "-id")[:MOST]][::-1]


def plan_marks_of(cluster: Cluster, time_range: TimeRange) -> list[PlanMark]:
    """Return the marks in charts: plans, and limits that were first exceeded in the range."""
    plans = plans_between(cluster, time_range.start, time_range.end)[-MOST:]
    excesses = [
        excess
        for excess in excesses_between(cluster, time_range.start, time_range.end)
        if excess.since >= time_range.start
    ]
    plan_marks = [
        PlanMark(ms(plan.time), f"◆ {plan.proposal}", plan_text(plan), _proposal(cluster, plan))
        for plan in plans
    ]
    plan_marks += _excess_marks(excesses, time_range)
    return sorted(plan_marks, key=lambda mark: mark.t)


def _excess_marks(excesses: Sequence[Excess], time_range: TimeRange) -> list[PlanMark]:
    """Return one mark for the limits that were exceeded about the same time."""
    groups: list[list[Excess]] = []
    for excess in excesses:
        if groups and excess.since - groups[-1][0].since < time_range.length / _APART:
            groups[-1].append(excess)
        else:
            groups.append([excess])
    return [
        PlanMark(
            ms(group[0].since),
            f"! {group[0].label if len(group) == 1 else f'{len(group)} limits'}",
            "; ".join(excess.text for excess in group),
        )
        for group in groups
    ]


def plan_text(plan: AppliedPlan) -> str:
    """Return what happened, as a sentence without a full stop."""
    steps = f", {plan.versions} steps" if plan.versions > 1 else ""
    return f"Proposal {plan.proposal} took effect{steps}"


def _excess(row: Alert) -> Excess:
    kind = KINDS.get(AlertMeasure(row.subject)) if row.subject in set(AlertMeasure) else None
    title = kind.alert if kind else row.detail or "Application"
    label = kind.title.lower() if kind else "application"
    subject = subject_of_measure(row.subject, row.node, row.since)
    if subject.kind is SubjectKind.NODE:
        label = f"node {row.node}"
    return Excess(label, title, row.since, row.cleared_at, str(subject))


def _proposal(cluster: Cluster, plan: AppliedPlan) -> str:
    return reverse("proposal", args=[cluster.slug, plan.proposal])
