"""Proposals of a cluster: pages with filters, and lookup by id."""

from dataclasses import dataclass

from controlplane.models import Cluster, Proposal
from controlplane.pagination.listing import Filters, Listing, choice_filter
from controlplane.pagination.lookup import row_by
from controlplane.planning.adapters import adapters

# Columns that lists do not read.
HEAVY = ("actions", "imbalance_after", "obstacles", "summary")
STATES = tuple(str(state) for state in Proposal.State)


@dataclass(frozen=True)
class ProposalFilters(Filters):
    """Filters of the list; "" selects every state or planner."""

    state: str = choice_filter("state", lambda: STATES)
    planner: str = choice_filter("planner", lambda: tuple(adapters()))


def proposals_listing(cluster: Cluster, filters: ProposalFilters) -> Listing[Proposal, Proposal]:
    """Return the proposals, the newest first; plans are read when they are accessed."""
    proposals = Proposal.objects.filter(cluster=cluster).defer(*HEAVY).select_related("cluster")
    if filters.state:
        proposals = proposals.filter(state=filters.state)
    if filters.planner:
        proposals = proposals.filter(planner=filters.planner)
    return Listing(proposals, ("-requested_at", "-pk"), list, filters)


def proposal_by_id(cluster: Cluster, pk: int) -> Proposal:
    """Return a proposal of the cluster; raises `NotFound`."""
    rows = Proposal.objects.filter(cluster=cluster).select_related("cluster")
    return row_by(rows, "proposal", pk=pk)


def proposal_without_plan(cluster: Cluster, pk: int) -> Proposal:
    """Return a proposal whose plan is read when it is accessed; raises `NotFound`."""
    rows = Proposal.objects.filter(cluster=cluster).select_related("cluster")
    return row_by(rows.defer(*HEAVY), "proposal", pk=pk)


def proposal_of_page(cluster: Cluster, pk: int) -> Proposal:
    """Return a proposal with its summary, whose actions are read when they are accessed.

    Raises `NotFound`.
    """
    rows = Proposal.objects.filter(cluster=cluster).select_related("cluster")
    return row_by(rows.defer("actions", "imbalance_after", "obstacles"), "proposal", pk=pk)
