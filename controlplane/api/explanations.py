"""The endpoint of explanations: what exceeds a limit, since when, why, and what would end it."""

from dataclasses import replace
from typing import Any

from django.http import HttpRequest
from ninja import Router

from controlplane.api.common.schemas import Time, fields_of
from controlplane.api.common.security import cluster_of
from controlplane.explain import Cause, Explanation, explain, parse_subject
from controlplane.explain.change import NearbyChange
from controlplane.explain.values import (
    Contribution,
    Contributions,
    Fact,
    Finding,
    PredictedEffect,
    RankedChange,
    Remedy,
    Series,
)

router = Router(tags=["clusters"])


class FindingOut(fields_of(Finding)):  # type: ignore[misc]
    """A measure against its limit: the mean over span_s seconds; setting: of the policy.

    since: when the limit was exceeded, null if it is not; since_is_earliest: it was exceeded
    already half an hour before.
    """


class FactOut(fields_of(Fact)):  # type: ignore[misc]
    """A figure beside the finding; per_s: its change per second; total: of the whole cluster."""


class ExplainedSeriesOut(fields_of(Series)):  # type: ignore[misc]
    """A measure over time; times, changed_at and explained_at in ms since 1970."""


class ContributionOut(fields_of(Contribution)):  # type: ignore[misc]
    """The part of a stream, key or query; share from 0 to 1.

    rate and before: deliveries/s of streams and keys, evaluations/s of queries.
    is_large: without it, the subject would be below its limit.
    """


class ContributionsOut(fields_of(Contributions, without="rows")):  # type: ignore[misc]
    """The largest contributions; is_change: shares are parts of the increase, not of the load."""

    rows: list[ContributionOut]


class ExplainedChangeOut(fields_of(NearbyChange, without="placed")):  # type: ignore[misc]
    """A change before the explained moment; arrived, left: queries moved to and from the node."""

    text: str


class CauseOut(fields_of(Cause)):  # type: ignore[misc]
    """The likely cause; share: of the increase that it explains."""

    text: str


class RankedChangeOut(fields_of(RankedChange, without="cause")):  # type: ignore[misc]
    """A change before the exceeded limit; share: its estimated part of the disturbance.

    size: its effect in unit, share: from 0 to 1, both null if they are not measured. lead_s:
    seconds from the change to the start of the disturbance, negative for a later change.
    """

    cause: CauseOut
    text: str


class PredictedEffectOut(fields_of(PredictedEffect)):  # type: ignore[misc]
    """The predicted effect of a plan on a measure."""


class RemedyOut(fields_of(Remedy, without="effects")):  # type: ignore[misc]
    """A plan that would end it: a waiting proposal, or a planner with parameters to request."""

    effects: list[PredictedEffectOut]
    text: str


class ExplanationOut(
    fields_of(  # type: ignore[misc]
        Explanation,
        without="subject finding facts series streams keys queries changes cause ranked remedies",
    )
):
    """An explanation; headline: the finding, summary: finding, cause and plans as sentences."""

    subject: str
    headline: str
    summary: str
    finding: FindingOut
    facts: list[FactOut]
    series: ExplainedSeriesOut | None
    streams: ContributionsOut | None
    keys: ContributionsOut | None
    queries: ContributionsOut | None
    changes: list[ExplainedChangeOut]
    cause: CauseOut | None
    ranked: list[RankedChangeOut]
    remedies: list[RemedyOut]

    @staticmethod
    def resolve_subject(row: Explanation) -> str:
        """Return the text of the subject."""
        return str(row.subject)


@router.get("/{slug}/explanations/{subject}", response=ExplanationOut)
def get_explanation(request: HttpRequest, slug: str, subject: str, time: Time | None = None) -> Any:
    """Explain a subject: what exceeds a limit, since when, the likely cause, and fitting plans.

    It is node:<index>, stream:<name>, query:<name>, measure:<name> or decision:<id>, and may end
    with @ and a time in ms since 1970. Query parameter time: the time in another form, by default
    now.
    """
    cluster = cluster_of(request)
    chosen = parse_subject(subject)
    return explain(cluster, replace(chosen, time=time or chosen.time))
