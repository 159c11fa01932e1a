"""Proposals of a cluster: pages with filters, and lookup by id."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.db.models import Count, Max, Min, Q

from controlplane.models import Cluster, Proposal
from controlplane.pagination.columns import FieldKind, stored
from controlplane.pagination.filter_text import MAX_LENGTH
from controlplane.pagination.listing import Filters, Listing, choice_filter, selected, text_filter
from controlplane.pagination.lookup import row_by
from controlplane.planning.sources import source_names
from controlplane.plans.proposal_states import ENDED, State

# Of the columns that grow with the plan, rows of lists have the measures and the drift.
UNLISTED: Final = tuple({*Proposal.HEAVY} - {"before", "after", "drift"})
STATES = tuple(str(state) for state in Proposal.State)
OPEN: Final = "open"
# The state of a plan that became stale while it was executed.
ENDED_EARLY: Final = "ended early"
_EARLY: Final = Q(state=State.STALE, execution__isnull=False)


def _state_is(_scope: object, lookup: str, state: str) -> Q:
    if state in (OPEN, ENDED_EARLY):
        return _EARLY if state == ENDED_EARLY else ~Q(state__in=ENDED)
    return Q(**{f"state__{lookup}": state})


COLUMNS: Final = (
    stored("id", "number of the proposal", "id", kind=FieldKind.NUMBER, place=1),
    stored("state", "state; open: not ended; ended early: stale while executed", "state",
            kind=FieldKind.CHOICE, condition=_state_is,
            choices=lambda: (OPEN, ENDED_EARLY, *STATES), place=4),
    stored("planner", "planner", "planner", kind=FieldKind.CHOICE, choices=source_names, place=2),
    stored("algorithm", "algorithm of the planner", "algorithm", place=3),
    stored("action_count", "number of its actions, null without a plan", "actions",
            kind=FieldKind.NUMBER, stored="predicted__actions", type=int | None,
            value=lambda row: row.predicted.get("actions"), in_file="actions", place=5),
    stored("requested_by", "user or component who requested it", "by", place=6),
    stored("requested_at", "time of the request", "requested", kind=FieldKind.TIME, place=7),
    stored("approved_by", "user or component who approved it", "approver"),
    stored("approved_at"),
    stored("decided_by"),
    stored("decided_at", "time of the decision", "decided", kind=FieldKind.TIME),
    stored("error_code", "code of the error of its computation, such as out_of_memory", "error"),
)  # fmt: skip


@dataclass(frozen=True)
class ProposalFilters(Filters):
    """Filters of the list; "" selects every state or planner; filter is a filter text."""

    state: str = choice_filter("state", lambda: STATES)
    planner: str = choice_filter("planner", source_names)
    filter: str = text_filter("filter", MAX_LENGTH)


def proposals_listing(cluster: Cluster, filters: ProposalFilters) -> Listing[Proposal, Proposal]:
    """Return the proposals, the newest first; plans are read when they are accessed.

    Raises `BadFilter`.
    """
    proposals = Proposal.objects.filter(cluster=cluster).select_related("cluster", "execution")
    proposals = proposals.defer(*UNLISTED, "execution__planned_stops", "execution__rollback_cost")
    proposals = selected(proposals, filters, COLUMNS, _mentions)
    return Listing(proposals, ("-requested_at", "-pk"), list, filters)


def _mentions(word: str) -> Q:
    names = ("planner", "algorithm", "requested_by", "approved_by", "error")
    return Q(*((f"{name}__icontains", word) for name in names), _connector=Q.OR)


@dataclass(frozen=True)
class Repeats:
    """Requests of monitors that found no better plan: their number, and the time of the first."""

    count: int
    first: datetime


def without_repeats(
    listing: Listing[Proposal, Proposal],
) -> tuple[Listing[Proposal, Proposal], dict[int, Repeats]]:
    """Return the rows without repeated requests of monitors that found no better plan.

    Of those of a planner with the same first aim the newest stays; the second value has its
    repeats by its id.
    """
    fruitless = Q(origin=Proposal.Origin.WATCH, state=Proposal.State.NO_BETTER_PLAN)
    groups = (
        listing.rows.filter(fruitless)
        .order_by()
        .values("planner", "aims__0")
        .annotate(newest=Max("pk"), count=Count("pk"), first=Min("requested_at"))
    )
    repeats = {row["newest"]: Repeats(row["count"], row["first"]) for row in groups}
    rows = listing.rows.exclude(fruitless & ~Q(pk__in=repeats))
    return replace(listing, rows=rows, counted=None), repeats


def proposal_by_id(cluster: Cluster, pk: int) -> Proposal:
    """Return a proposal of the cluster; raises `NotFound`."""
    rows = Proposal.objects.filter(cluster=cluster).select_related("cluster")
    return row_by(rows, "proposal", pk=pk)


def proposal_without_plan(cluster: Cluster, pk: int) -> Proposal:
    """Return a proposal whose plan is read when it is accessed; raises `NotFound`."""
    rows = Proposal.objects.filter(cluster=cluster).select_related("cluster")
    return row_by(rows.defer(*UNLISTED), "proposal", pk=pk)


def proposal_of_page(cluster: Cluster, pk: int) -> Proposal:
    """Return a proposal with its summary, whose actions are read when they are accessed.

    Raises `NotFound`.
    """
    rows = Proposal.objects.filter(cluster=cluster).select_related("cluster")
    return row_by(rows.defer("actions", "imbalance_after", "obstacles"), "proposal", pk=pk)
