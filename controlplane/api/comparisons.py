"""Comparisons, effects of actions, proposals without some of their actions, the ledger."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Status

from controlplane.api.common.lists import about, numbers_of
from controlplane.api.common.schemas import ReasonIn
from controlplane.api.common.security import caller, cluster_of, viewed_cluster
from controlplane.api.comparison_schemas import (
    CalibrationsOut,
    CancelledOut,
    ComparisonIn,
    ComparisonOut,
    ComparisonPage,
    EffectPage,
    LedgerPage,
    WithoutIn,
)
from controlplane.api.proposal_schemas import ProposalOut
from controlplane.planning.adapters import adapters
from controlplane.policies.planner_record import calibration, ledger_page, record_of
from controlplane.proposals import comparisons, derivation
from controlplane.proposals.comparison_table import compared, comparison_by_id, comparisons_page
from controlplane.proposals.comparisons import PlannerRequest
from controlplane.proposals.effects import effects_page
from controlplane.proposals.listing import proposal_by_id

router = Router(tags=["comparisons"])


@router.post("/{slug}/comparisons", response={202: ComparisonOut})
def request_comparison(request: HttpRequest, slug: str, body: ComparisonIn) -> Any:
    """Ask several planners, under several budgets, about one snapshot of the cluster.

    Every candidate is a proposal; the one that is approved supersedes the others.
    """
    actor, cluster = caller(request), cluster_of(request)
    planners = [
        PlannerRequest(item.planner, item.algorithm, item.parameters) for item in body.asked
    ]
    comparison = comparisons.compare(actor, cluster, planners, body.budgets)
    return Status(202, compared(comparison))


@router.get("/{slug}/comparisons", response=ComparisonPage)
def list_comparisons(request: HttpRequest, slug: str) -> Any:
    """Return one page, the newest first; query parameters page, per_page."""
    page = comparisons_page(viewed_cluster(request), *numbers_of(request))
    return about(page) | {"comparisons": list(page.rows)}


@router.get("/{slug}/comparisons/{int:pk}", response=ComparisonOut)
def get_comparison(request: HttpRequest, slug: str, pk: int) -> Any:
    """Return the table of a comparison, with the progress of what is still computed."""
    return compared(comparison_by_id(viewed_cluster(request), pk))


@router.post("/{slug}/comparisons/{int:pk}/cancel", response=CancelledOut)
def cancel_comparison(
    request: HttpRequest, slug: str, pk: int, body: ReasonIn | None = None
) -> Any:
    """Stop all candidates that are still computed; one alone is cancelled as a proposal."""
    actor, comparison = caller(request), comparison_by_id(cluster_of(request), pk)
    return {"cancelled": comparisons.cancel(actor, comparison, body.reason if body else "")}


@router.get("/{slug}/proposals/{int:pk}/effects", response=EffectPage)
def list_effects(request: HttpRequest, slug: str, pk: int) -> Any:
    """Return what leaving out each action alone would change; query parameters page, per_page."""
    page = effects_page(proposal_by_id(viewed_cluster(request), pk), *numbers_of(request))
    return about(page) | {"effects": [vars(row) | vars(row.text) for row in page.rows]}


@router.post("/{slug}/proposals/{int:pk}/without", response={201: ProposalOut})
def leave_out_actions(request: HttpRequest, slug: str, pk: int, body: WithoutIn) -> Any:
    """Derive a proposal without some of the actions, with its own order, measures and seal."""
    actor, proposal = caller(request), proposal_by_id(cluster_of(request), pk)
    return Status(201, derivation.without(actor, proposal, body.places))


@router.get("/{slug}/ledger", response=LedgerPage)
def list_ledger(request: HttpRequest, slug: str) -> Any:
    """Return one page of the ledger, the newest first; query parameters page, per_page."""
    page = ledger_page(viewed_cluster(request), *numbers_of(request))
    return about(page) | {"entries": list(page.rows)}


@router.get("/{slug}/ledger/calibration", response=CalibrationsOut)
def get_calibration(request: HttpRequest, slug: str) -> Any:
    """Return how the predictions of each planner came out on this cluster."""
    cluster = viewed_cluster(request)
    records = {planner: record_of(cluster, planner) for planner in adapters()}
    return {
        "records": [{"planner": name} | vars(record) for name, record in records.items()],
        "figures": calibration(cluster),
    }
