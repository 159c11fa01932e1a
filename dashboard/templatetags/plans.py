"""Template tags of proposals: rows with limits, loads of nodes, shades of matrices, progress.

Positions are attributes of SVG elements, because the Content Security Policy forbids style
attributes.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from algorithms.registry import algorithm_title
from controlplane.models import Proposal
from controlplane.numbers import compact, lowered, seconds_range, value_text
from controlplane.planning.measures import Measure
from controlplane.planning.plan_summary import PlanSummary
from controlplane.planning.sources import planner_title
from controlplane.policies.gains import SAME
from controlplane.policies.grades import Grade
from controlplane.proposals.executions.progress import Progress
from controlplane.proposals.outcome import MeasureOutcome, MeasureStatus, Outcome, outcome_of
from controlplane.svg import percent
from dashboard.templatetags.design import tick

register = template.Library()
# The shades of a matrix, from the lightest.
_SHADES: Final = 5
# The words of what a plan does to a measure.
STATUSES: Final[Mapping[MeasureStatus, str]] = {
    MeasureStatus.RESOLVED: "now OK",
    MeasureStatus.KEPT: "OK",
    MeasureStatus.REMAINS: "above limit",
    MeasureStatus.WORSENED: "worse",
    MeasureStatus.NO_LIMIT: "",
}

# The places of papers in the summaries of algorithms.
_SOURCE: Final = re.compile(
    r",?(?: by| of)? \(?(?:beyond )?(?:section|equations?|Figure) \d+(?:\.\d+)*\w?(?: and \w+)?\)?"
)


@register.filter
def algorithm_name(plan: Any) -> str:
    """Return the title of a plan's algorithm."""
    return algorithm_title(plan.planner, plan.algorithm)


@register.filter
def plan_title(plan: Any) -> str:
    """Return what a plan does by its planner, such as “Move queries between nodes”."""
    return planner_title(plan.planner)


@register.filter
def without_source(summary: str) -> str:
    """Return the summary of an algorithm without the sections of its paper."""
    return _SOURCE.sub("", summary)


@register.simple_tag
def review_button(number: int, size: str = "") -> SafeString:
    """Return the link to a waiting proposal, which is primary only if its outcome is good.

    What its plan leaves exceeded stands beside it. `size`: "small", or "".
    """
    proposal = Proposal.objects.defer(*Proposal.HEAVY).select_related("cluster").get(pk=number)
    outcome = outcome_of(proposal, PlanSummary())
    left, is_good = _left_text(outcome), outcome.grade is Grade.GOOD
    return format_html(
        '<span class="review"><a class="button{}{}" href="{}">Review proposal {}</a>{}</span>',
        f" {size}" if size else "", " primary" if is_good else "",
        reverse("proposal", args=[proposal.cluster.slug, number]), number,
        format_html('<span class="tiny muted">{}</span>', left) if left else "",
    )  # fmt: skip


def _left_text(outcome: Outcome) -> str:
    """Return which limits a plan leaves exceeded, "" for none."""
    return "; ".join(map(_left, outcome.left))


def _left(row: MeasureOutcome) -> str:
    unit, title = row.measure.unit, lowered(row.measure.title)
    change = (row.expected or 0.0) - (row.now or 0.0)
    verb = "leaves" if abs(change) <= SAME else "lowers" if change < 0 else "raises"
    reached = f"{'at' if verb == 'leaves' else 'to'} {value_text(row.expected, unit)}"
    limit = value_text(row.limit, unit)
    if reached.endswith(f" {limit}"):
        return f"{verb} {title} {reached.partition(' ')[0]} just above its limit of {limit}"
    exceeded = "stays exceeded" if row.is_exceeded else "is exceeded then"
    return f"{verb} {title} {reached}, limit {limit} {exceeded}"


@register.filter
def status_word(status: MeasureStatus) -> str:
    """Return what a plan does to a measure, "" if it has no limit."""
    return STATUSES[status]


@register.filter
def figure(value: float | None, measure: Measure) -> str:
    """Return a value of a measure; the unit of a rate is in the title, for lack of space."""
    if value is None or not measure.unit.endswith("/s"):
        return value_text(value, measure.unit)
    return compact(value)


@register.filter
def eta(progress: Progress) -> str:
    """Return the range of the time that an execution still takes, "" if it has stopped."""
    if progress.eta_least_s is None or progress.eta_most_s is None:
        return ""
    return seconds_range(progress.eta_least_s, progress.eta_most_s)


@register.filter
def takes(outcome: Outcome) -> str:
    """Return the range of the time that a plan takes."""
    return seconds_range(outcome.seconds, outcome.most_seconds)


@register.simple_tag
def passed_of(checks: Sequence[Mapping[str, Any]]) -> str:
    """Return how many of the checks pass."""
    passed = sum(check["passed"] for check in checks)
    return f"{passed} of {len(checks)} checks pass"


@register.simple_tag
def range_row(
    now: float | None,
    expected: float | None,
    limit: float | None = None,
    bound: float | None = None,
) -> SafeString:
    """Return a line from the present to the expected value with limit and bound.

    Numbers stand beside it.
    """
    known = [value for value in (now, expected, limit, bound) if value is not None]
    top = 1.15 * max(known, default=0.0)
    if not top or now is None or expected is None:
        return SafeString("")
    left, right = sorted((now, expected))
    return format_html(
        '<svg class="range-line" aria-hidden="true"><rect class="rail" y="8" width="100%"'
        ' height="4"/><rect class="path" y="8" x="{}" width="{}" height="4"/>{}{}'
        '<circle class="was" cx="{}" cy="10" r="4.5"/><circle class="will" cx="{}" cy="10" r="5"/>'
        "</svg>",
        percent(left, top), percent(right - left, top), tick("at-limit", limit, top, 20),
        tick("at-bound", bound, top, 20), percent(now, top), percent(expected, top),
    )  # fmt: skip


@register.simple_tag
def load_bar(before: float, after: float, top: float, limit: float) -> SafeString:
    """Return the load of a node: outline now, bar after; the tick is the limit."""
    whole = max(top, limit) * 1.1
    grade = "bad" if after > limit else ""
    return format_html(
        '<svg class="load-bar" data-grade="{}" aria-hidden="true"><rect class="track" width="100%"'
        ' height="12" y="2"/><rect class="value" y="4" width="{}" height="8"/>'
        '<rect class="outline" y="2" width="{}" height="12"/>{}</svg>',
        grade, percent(after, whole), percent(before, whole), tick("at-limit", limit, whole, 16),
    )  # fmt: skip


@register.simple_tag
def shade(value: int, most: int) -> str:
    """Return the CSS class of a cell of a matrix, "" for 0."""
    if not value or not most:
        return ""
    return f"shade-{max(1, round(_SHADES * value / most))}"


@register.simple_tag
def progress_bar(done: float, part: float = 0.0) -> SafeString:
    """Return a bar of a finished share and of the share in progress, both from 0 to 1."""
    return format_html(
        '<svg class="progress-bar" role="progressbar" aria-valuenow="{}" aria-valuemin="0"'
        ' aria-valuemax="100" aria-label="Finished actions"><rect class="track" width="100%"'
        ' height="10"/><rect class="value" width="{}" height="10"/>'
        '<rect class="part" x="{}" width="{}" height="10"/></svg>',
        round(100 * done), percent(done), percent(done), percent(part),
    )  # fmt: skip
