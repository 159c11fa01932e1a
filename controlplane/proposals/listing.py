"""Proposals of a cluster: pages with filters, and lookup by id."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from controlplane.errors import NotFound
from controlplane.models import Cluster, Proposal
from controlplane.pagination.cursors import Place, Slice, slice_of
from controlplane.pagination.pages import MAX_PER_PAGE, PER_PAGE, Page, one_of, page_of, whole
from controlplane.planning.adapters import adapters

# Columns that lists do not read.
HEAVY = ("actions", "imbalance_after")
STATES = tuple(str(state) for state in Proposal.State)


@dataclass(frozen=True)
class ProposalFilters:
    """Filters of the list; "" selects every state or planner."""

    state: str = ""
    planner: str = ""
    page: int = 1
    per_page: int = PER_PAGE

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "ProposalFilters":
        """Read state, planner, page, per_page of a query string."""
        return cls(
            state=one_of(values, "state", STATES),
            planner=one_of(values, "planner", tuple(adapters())),
            page=whole(values, "page", 1),
            per_page=whole(values, "per_page", PER_PAGE, MAX_PER_PAGE),
        )


def proposals_page(cluster: Cluster, filters: ProposalFilters) -> Page[Proposal]:
    """Return one page, the newest first; plans are read when they are accessed."""
    return page_of(_filtered(cluster, filters), filters.page, filters.per_page, list)


def proposals_slice(cluster: Cluster, filters: ProposalFilters, place: Place) -> Slice[Proposal]:
    """Return the proposals after a cursor, the newest first. Raises `Invalid`."""
    return slice_of(_filtered(cluster, filters), ("-requested_at", "-pk"), place, list)


def _filtered(cluster: Cluster, filters: ProposalFilters) -> QuerySet[Proposal]:
    proposals = Proposal.objects.filter(cluster=cluster).defer(*HEAVY).select_related("cluster")
    if filters.state:
        proposals = proposals.filter(state=filters.state)
    if filters.planner:
        proposals = proposals.filter(planner=filters.planner)
    return proposals


def proposal_by_id(cluster: Cluster, pk: int) -> Proposal:
    """Return a proposal of the cluster; raises `NotFound`."""
    return _proposal(Proposal.objects.filter(cluster=cluster), pk)


def proposal_without_plan(cluster: Cluster, pk: int) -> Proposal:
    """Return a proposal whose plan is read when it is accessed; raises `NotFound`."""
    return _proposal(Proposal.objects.filter(cluster=cluster).defer(*HEAVY), pk)


def _proposal(proposals: QuerySet[Proposal], pk: int) -> Proposal:
    proposal = proposals.select_related("cluster").filter(pk=pk).first()
    if proposal is None:
        raise NotFound("proposal", pk)
    return proposal
