"""The endpoint of explanations: what exceeds a limit, since when, why, and what would end it."""

from dataclasses import replace
from typing import Any

from django.http import HttpRequest
from ninja import Router

from controlplane.api.common.schemas import Time, fields_of
from controlplane.api.common.security import cluster_of
from controlplane.explain import Cause, Explanation, explain, parse_subject
from controlplane.explain.change import NearbyChange
from controlplane.explain.values import RankedChange, Remedy

router = Router(tags=["clusters"])


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


class RemedyOut(fields_of(Remedy)):  # type: ignore[misc]
    """A plan that would end it: a waiting proposal, or a planner with parameters to request."""

    text: str


class ExplanationOut(
    fields_of(Explanation, without="subject changes ranked remedies")  # type: ignore[misc]
):
    """An explanation; headline: the finding, summary: finding, cause and plans as sentences."""

    subject: str
    headline: str
    summary: str
    changes: list[ExplainedChangeOut]
    cause: CauseOut | None
    ranked: list[RankedChangeOut]
    remedies: list[RemedyOut]

    resolve_subject = staticmethod(lambda row: str(row.subject))


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
