"""The kinds of lists: fields, common filters, rows and columns, declared once for all uses.

Filter bars, saved views and exports are derived from them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from django.db.models import Q

from controlplane.access import audit
from controlplane.access.roles import Actor
from controlplane.catalog import columns, queries, streams
from controlplane.errors import NotFound
from controlplane.models import Cluster
from controlplane.pagination.columns import Columns
from controlplane.pagination.listing import Filters, Listing
from controlplane.proposals import listing as proposals
from controlplane.watch import decision_log


@dataclass(frozen=True)
class CommonFilter:
    """A filter that people use often, with its title."""

    title: str
    text: str


@dataclass(frozen=True)
class ListScope:
    """Whose rows a list has: the reader, and the cluster of the page, None for all clusters."""

    reader: Actor
    cluster: Cluster | None = None


@dataclass(frozen=True)
class ListKind:
    """A kind of list.

    `noun`: its rows in the plural; `default`, `order`: filter text and order of an address without
    them; `listing`: returns the rows of a cluster (None: of all) that its filters select;
    `between`: the condition of a time range, None for a list that has no times; `is_of_cluster`:
    False for all clusters.
    """

    name: str
    noun: str
    columns: Columns
    common: Sequence[CommonFilter]
    filters: type[Filters]
    listing: Callable[[Any, Any], Listing[Any, Any]]
    default: str = ""
    order: str = ""
    example: str = ""
    between: Callable[[datetime, datetime], Q] | None = None
    is_of_cluster: bool = True

    @property
    def fields(self) -> Columns:
        """Return the columns that its filter text can name."""
        return [column for column in self.columns if column.kind]

    @property
    def shown(self) -> Columns:
        """Return the columns of its table."""
        return [column for column in self.columns if column.title]

    def rows(self, scope: ListScope, values: Mapping[str, Any]) -> Listing[Any, Any]:
        """Return the filtered rows of a scope by the values of a query string. Raises `Invalid`."""
        if self.is_of_cluster:
            return self.listing(scope.cluster, self.filters.of(values))
        return self.listing(None, self.filters.of(values, reader=scope.reader))

    def within(
        self, listing: Listing[Any, Any], start: datetime, stop: datetime
    ) -> Listing[Any, Any]:
        """Return the rows of a listing in the time range from start to stop (excluded)."""
        if self.between is None:
            return listing
        return replace(listing, rows=listing.rows.filter(self.between(start, stop)), counted=None)


def list_kind(name: str) -> ListKind:
    """Return the kind of list with a name. Raises `NotFound`."""
    if name not in KINDS:
        raise NotFound("list", name)
    return KINDS[name]


_ALL: Final[Sequence[ListKind]] = (
    ListKind(
        "queries", "queries", columns.queries.COLUMNS,
        (CommonFilter("Live", "state:live"), CommonFilter("Failed", "state:failed"),
         CommonFilter("Pending", "state:pending"), CommonFilter("Ended", "state:ended"),
         CommonFilter("Split", "state:live tasks>1"), CommonFilter("All", "")),
        queries.QueryFilters, queries.queries_listing,
        default="state:live", example="state:running node:3 rate>10",
    ),
    ListKind(
        "streams", "streams", columns.streams.COLUMNS,
        (CommonFilter("All", ""), CommonFilter("Read", "queries>0"),
         CommonFilter("Not read", "queries:0"), CommonFilter("With drop rules", "has:drops"),
         CommonFilter("Without a schema", "-has:schema")),
        streams.StreamFilters, streams.streams_listing, order="-rate",
        example="rate>100 split:0 has:drops",
    ),
    ListKind(
        "proposals", "proposals", proposals.COLUMNS,
        (CommonFilter("All", ""), CommonFilter("Open", "state:open"),
         CommonFilter("Ready for approval", "state:ready"),
         CommonFilter("Done", "state:done"), CommonFilter("Failed", "state:failed,stale")),
        proposals.ProposalFilters, proposals.proposals_listing,
        example="state:ready planner:placement actions>100",
    ),
    ListKind(
        "decisions", "decisions", decision_log.COLUMNS,
        (CommonFilter("All", ""), CommonFilter("Acted", "reason:acted,redirected"),
         CommonFilter("Failed", "reason:failed,no_planner"),
         CommonFilter("With a proposal", "proposal>0")),
        decision_log.DecisionFilters, decision_log.decisions_listing,
        example="reason:acted times>10",
        between=lambda start, stop: Q(last_at__gte=start, first_at__lt=stop),
    ),
    ListKind(
        "audit", "entries", audit.COLUMNS,
        (CommonFilter("All", ""), CommonFilter("By people", "by:user"),
         CommonFilter("By Weir", "by:weir"), CommonFilter("Proposals", "action:proposal."),
         CommonFilter("Policies and grants", "action:policy.,grant."),
         CommonFilter("Logins", "action:login")),
        audit.AuditFilters, lambda _all, filters: audit.audit_listing(filters),
        example="by:user action:query. on:trip",
        between=lambda start, stop: Q(at__gte=start, at__lt=stop), is_of_cluster=False,
    ),
)  # fmt: skip
KINDS: Final[Mapping[str, ListKind]] = MappingProxyType({kind.name: kind for kind in _ALL})
