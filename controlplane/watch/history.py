"""Logged decisions of the watch loops: the last of each loop, and lists."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from controlplane.models import Cluster, Decision
from controlplane.pagination.cursors import Place, Slice, slice_of
from controlplane.pagination.pages import MAX_PER_PAGE, PER_PAGE, Page, one_of, page_of, whole
from controlplane.watch.codes import CODES
from controlplane.watch.loops import LOOPS

LOOP_NAMES = tuple(loop.name for loop in LOOPS)
CODE_NAMES = tuple(CODES)


@dataclass(frozen=True)
class DecisionFilters:
    """Filters of the list; "" selects all."""

    loop: str = ""
    code: str = ""
    page: int = 1
    per_page: int = PER_PAGE

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "DecisionFilters":
        """Read loop, code, page, per_page of a query string."""
        return cls(
            loop=one_of(values, "loop", LOOP_NAMES),
            code=one_of(values, "code", CODE_NAMES),
            page=whole(values, "page", 1),
            per_page=whole(values, "per_page", PER_PAGE, MAX_PER_PAGE),
        )


def last_decisions(cluster: Cluster) -> dict[str, Decision | None]:
    """Return the last decision of each loop, in the order of the loops; None before the first."""
    rows = Decision.objects.filter(cluster=cluster).order_by("-last_at", "-id")
    return {name: rows.filter(loop=name).first() for name in LOOP_NAMES}


def decisions_page(cluster: Cluster, filters: DecisionFilters) -> Page[Decision]:
    """Return a page, newest first."""
    rows = _filtered(cluster, filters).order_by("-last_at", "-id")
    return page_of(rows, filters.page, filters.per_page, list)


def decisions_slice(cluster: Cluster, filters: DecisionFilters, place: Place) -> Slice[Decision]:
    """Return the decisions after a cursor, newest first."""
    return slice_of(_filtered(cluster, filters), ("-first_at", "-pk"), place, list)


def _filtered(cluster: Cluster, filters: DecisionFilters) -> QuerySet[Decision]:
    decisions = Decision.objects.filter(cluster=cluster)
    if filters.loop:
        decisions = decisions.filter(loop=filters.loop)
    return decisions.filter(code=filters.code) if filters.code else decisions
