"""Logged decisions of the watch loops: the last of each loop, and lists."""

from dataclasses import dataclass

from controlplane.models import Cluster, Decision
from controlplane.pagination.listing import Filters, Listing, choice_filter
from controlplane.watch.codes import CODES
from controlplane.watch.loops import LOOPS

LOOP_NAMES = tuple(loop.name for loop in LOOPS)
CODE_NAMES = tuple(CODES)


@dataclass(frozen=True)
class DecisionFilters(Filters):
    """Filters of the list; "" selects all."""

    loop: str = choice_filter("loop", lambda: LOOP_NAMES)
    code: str = choice_filter("code", lambda: CODE_NAMES)


def last_decisions(cluster: Cluster) -> dict[str, Decision | None]:
    """Return the last decision of each loop, in the order of the loops; None before the first."""
    rows = Decision.objects.filter(cluster=cluster).order_by("-last_at", "-id")
    return {name: rows.filter(loop=name).first() for name in LOOP_NAMES}


def decisions_listing(
    cluster: Cluster, filters: DecisionFilters, order: str = "-last_at"
) -> Listing[Decision, Decision]:
    """Return the decisions, newest first; `order`: -first_at for cursors, as it never changes."""
    decisions = Decision.objects.filter(cluster=cluster)
    if filters.loop:
        decisions = decisions.filter(loop=filters.loop)
    if filters.code:
        decisions = decisions.filter(code=filters.code)
    return Listing(decisions, (order, "-pk"), list, filters)
