"""Comparisons, effects of actions, proposals without some of their actions, the ledger."""

from datetime import datetime
from typing import Annotated, Any, Final

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema, Status
from pydantic import Field

from controlplane.api.common.lists import list_parameters, listed
from controlplane.api.common.schemas import (
    ReasonIn,
    RequestBody,
    below,
    columns_of,
    fields_of,
    list_of,
)
from controlplane.api.common.security import caller, cluster_of
from controlplane.api.proposals import ProposalIn, ProposalOut
from controlplane.models import Comparison, LedgerEntry
from controlplane.planning.action_text import ActionText
from controlplane.planning.adapters import adapters
from controlplane.planning.effects import Effect
from controlplane.policies.planner_record import (
    Calibration,
    Record,
    calibration,
    ledger_listing,
    record_of,
)
from controlplane.proposals import comparisons, derivation
from controlplane.proposals.comparison_table import (
    Candidate,
    compared,
    comparison_by_id,
    comparisons_listing,
)
from controlplane.proposals.comparisons import PlannerRequest
from controlplane.proposals.effects import EffectRow, effects_listing
from controlplane.proposals.listing import proposal_by_id


class AskedIn(ProposalIn):
    """One planner's algorithm with its parameters; empty is the planner's default."""


class ComparisonIn(RequestBody):
    """Who is asked; budgets: every planner is asked under each, {} is without a limit.

    A budget has some of bytes, moves, pause_ms (of all tasks together) and share (0 to 1, of the
    plan's own bytes).
    """

    asked: list[AskedIn] = Field(max_length=24)
    budgets: list[dict[str, float | None]] = Field(default_factory=list, max_length=24)


class ComparisonOut(Schema):
    """A comparison: the figures of the snapshot, and the candidates.

    cost: the cost of a plan: bytes, or moves where no state was measured.
    """

    id: int = below("comparison.pk")
    requested_by: str = below("comparison.requested_by")
    requested_at: datetime = below("comparison.requested_at")
    snapshot: str | None = below("comparison.snapshot_row_id")
    imbalance: float
    replication_factor: float | None
    cost: str
    computing: int
    candidates: list[Candidate]


class ComparisonRow(columns_of(Comparison, "id requested_by requested_at")):  # type: ignore[misc]
    """A comparison in a list; how many candidates it has, and how many are still computed."""

    total: int
    computing: int


ComparisonPage = list_of("ComparisonPage", comparisons=ComparisonRow)


class CancelledOut(Schema):
    """How many candidates were stopped."""

    cancelled: int


class EffectValues(fields_of(Effect, without="place worst")):  # type: ignore[misc]
    """The change of each measure if the action is left out; above 0 it is worse without it."""


class EffectOut(fields_of(EffectRow, ActionText, without="text effect")):  # type: ignore[misc]
    """An action at its place in the order, its effect, and the worst loaded node without it."""

    effect: EffectValues


EffectPage = list_of("EffectPage", effects=EffectOut)


class WithoutIn(RequestBody):
    """The places of the actions that are to be left out, from 0."""

    # Bounded one by one: whole numbers can be chosen so that a set of them takes hours.
    places: list[Annotated[int, Field(ge=0, lt=100_000)]] = Field(max_length=100_000)


_FIGURES: Final = dict[str, float]


class LedgerOut(
    columns_of(  # type: ignore[misc]
        LedgerEntry,
        "proposal planner algorithm outcome applied skipped samples at",
        approved=_FIGURES,
        expected=_FIGURES,
        measured=_FIGURES,
        without=_FIGURES,
        without_error=_FIGURES,
        assessment=list[dict[str, Any]],
    )
):
    """What one executed proposal promised when it was approved, and what was measured.

    expected: the same figures for the actions that were applied. without: what the placement before
    the plan would have given; without_error: within which 80 % of the errors of that model are.
    assessment: by measure, what the plan did to it against without: helped, unchanged or harmed.
    """


LedgerPage = list_of("LedgerPage", entries=LedgerOut)


class RecordOut(fields_of(Record)):  # type: ignore[misc]
    """How good a planner's predictions were: in the median a run was off by median_error."""

    planner: str


class CalibrationsOut(Schema):
    """The records of all planners, and the calibration of every figure."""

    records: list[RecordOut]
    figures: list[Calibration]


router = Router(tags=["comparisons"])


@router.post("/{slug}/comparisons", response={202: ComparisonOut})
def request_comparison(request: HttpRequest, slug: str, body: ComparisonIn) -> Any:
    """Ask several planners, under several budgets, about one snapshot of the cluster.

    Every candidate is a proposal; the one that is approved supersedes the others.
    """
    actor, cluster = caller(request), cluster_of(request)
    planners = [PlannerRequest(**item.model_dump()) for item in body.asked]
    comparison = comparisons.compare(actor, cluster, planners, body.budgets)
    return Status(202, compared(comparison))


@router.get("/{slug}/comparisons", response=ComparisonPage, openapi_extra=list_parameters())
def list_comparisons(request: HttpRequest, response: HttpResponse, slug: str) -> Any:
    """List comparisons, the newest first; query parameters cursor, limit (up to 1000)."""
    return listed(request, response, comparisons_listing(cluster_of(request)), "comparisons")


@router.get("/{slug}/comparisons/{int:pk}", response=ComparisonOut)
def get_comparison(request: HttpRequest, slug: str, pk: int) -> Any:
    """Return the table of a comparison, with the progress of what is still computed."""
    return compared(comparison_by_id(cluster_of(request), pk))


@router.post("/{slug}/comparisons/{int:pk}/cancel", response=CancelledOut)
def cancel_comparison(request: HttpRequest, slug: str, pk: int, body: ReasonIn) -> Any:
    """Stop all candidates that are still computed; one alone is cancelled as a proposal."""
    actor, comparison = caller(request), comparison_by_id(cluster_of(request), pk)
    return {"cancelled": comparisons.cancel(actor, comparison, body.reason)}


@router.get(
    "/{slug}/proposals/{int:pk}/effects", response=EffectPage, openapi_extra=list_parameters()
)
def list_effects(request: HttpRequest, response: HttpResponse, slug: str, pk: int) -> Any:
    """Return what leaving out each action alone would change; query parameters cursor, limit."""
    listing = effects_listing(proposal_by_id(cluster_of(request), pk))
    return listed(request, response, listing, "effects", lambda row: vars(row) | vars(row.text))


@router.post("/{slug}/proposals/{int:pk}/without", response={201: ProposalOut})
def leave_out_actions(request: HttpRequest, slug: str, pk: int, body: WithoutIn) -> Any:
    """Derive a proposal without some of the actions, with its own order, measures and seal."""
    actor, proposal = caller(request), proposal_by_id(cluster_of(request), pk)
    return Status(201, derivation.without(actor, proposal, body.places))


@router.get("/{slug}/ledger", response=LedgerPage, openapi_extra=list_parameters())
def list_ledger(request: HttpRequest, response: HttpResponse, slug: str) -> Any:
    """List the entries of the ledger, the newest first; query parameters cursor, limit."""
    return listed(request, response, ledger_listing(cluster_of(request)), "entries")


@router.get("/{slug}/ledger/calibration", response=CalibrationsOut)
def get_calibration(request: HttpRequest, slug: str) -> Any:
    """Return how the predictions of each planner came out on this cluster."""
    cluster = cluster_of(request)
    records = {planner: record_of(cluster, planner) for planner in adapters()}
    return {
        "records": [{"planner": name} | vars(record) for name, record in records.items()],
        "figures": calibration(cluster),
    }
