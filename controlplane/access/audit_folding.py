"""The audit log with folded machine actions: people's entries one by one, others counted.

A machine action is one of a component of Weir, or a routine action of programs (submission and end
of queries, replay of dead letters). Those with the same actor, action and cluster in a period are
one row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from controlplane.access.routine_actions import ROUTINE
from controlplane.errors import Invalid
from controlplane.models import AuditEntry, Cluster
from controlplane.pagination.folding import Fold, fold_rows
from controlplane.pagination.listing import Listing

PER_PAGE: Final = 50
MACHINE: Final = ~Q(actor__in=User.objects.values("username")) | Q(action__in=ROUTINE)
_COLUMNS: Final = ("actor", "action", "cluster")


@dataclass(frozen=True)
class FoldedActions:
    """Equal actions of a machine in the period from start to stop (excluded)."""

    actor: str
    action: str
    cluster: Cluster | None
    count: int
    first: datetime
    last: datetime
    start: datetime
    stop: datetime


@dataclass(frozen=True)
class AuditRow:
    """A row of the list: an entry, or folded actions."""

    entry: AuditEntry | None
    folded: FoldedActions | None = None


@dataclass(frozen=True)
class FoldedPage:
    """Rows, newest first; `next`: the cursor of the rows after them, "" after the last.

    `people`: the number of people's entries of the whole time range, `machines`: of the others.
    """

    rows: Sequence[AuditRow]
    next: str
    people: int
    machines: int


# A row by its order: moment and id, 0 for folded actions.
_Key = tuple[datetime, int]


def folded_page(
    listing: Listing[AuditEntry, AuditEntry], period: timedelta, before: str = ""
) -> FoldedPage:
    """Return a page of a listing with folded machine actions.

    `before`: the cursor of the page, "" for the first. Raises `Invalid` for an invalid cursor.
    """
    bound = _read(before) if before else None
    folds = fold_rows(listing.rows.filter(MACHINE), _COLUMNS, period, first="at", last="at")
    people = listing.rows.filter(~MACHINE)
    rows: list[tuple[_Key, AuditEntry | Fold]] = [
        ((entry.at, entry.pk), entry) for entry in _entries(people, bound)
    ]
    rows += [((fold.last, 0), fold) for fold in folds if bound is None or (fold.last, 0) < bound]
    rows.sort(key=lambda row: row[0], reverse=True)
    stop = PER_PAGE
    # Folds of one moment stay together: a cursor cannot stand between them.
    while 0 < stop < len(rows) and rows[stop][0] == rows[stop - 1][0]:
        stop += 1
    shown = rows[:stop]
    cursor = _written(shown[-1][0]) if len(rows) > stop else ""
    machines = sum(fold.count for fold in folds)
    return FoldedPage(
        _audit_rows([row for _, row in shown], period, listing.row), cursor,
        people.count(), machines,
    )  # fmt: skip


def _entries(people: QuerySet[AuditEntry], bound: _Key | None) -> list[AuditEntry]:
    rows = people.order_by("-at", "-pk")
    if bound is not None:
        moment, pk = bound
        rows = rows.filter(at__lte=moment).exclude(Q(at=moment) & Q(pk__gte=pk))
    return list(rows[: PER_PAGE + 1])


def _audit_rows(
    rows: Sequence[AuditEntry | Fold],
    period: timedelta,
    shown: Callable[[Sequence[AuditEntry]], Sequence[AuditEntry]],
) -> list[AuditRow]:
    """Return the rows; a single machine action is an entry, too."""
    singles = [row.newest for row in rows if isinstance(row, Fold) and row.count == 1]
    known: dict[int, Any] = AuditEntry.objects.select_related("cluster").in_bulk(singles)
    clusters = Cluster.objects.in_bulk(
        {row.values[2] for row in rows if isinstance(row, Fold) and row.values[2] is not None}
    )
    entries = [known[row.newest] if isinstance(row, Fold) and row.count == 1 else row
               for row in rows]  # fmt: skip
    # Addresses that the reader may not see are removed.
    shown([row for row in entries if isinstance(row, AuditEntry)])
    return [
        AuditRow(row) if isinstance(row, AuditEntry)
        else AuditRow(None, _folded(row, period, clusters.get(row.values[2])))
        for row in entries
    ]  # fmt: skip


def _folded(fold: Fold, period: timedelta, cluster: Cluster | None) -> FoldedActions:
    actor, action, _ = fold.values
    return FoldedActions(
        actor, action, cluster, fold.count, fold.first, fold.last, fold.start, fold.start + period
    )


def _written(key: _Key) -> str:
    return f"{key[0].isoformat()}_{key[1]}"


def _read(cursor: str) -> _Key:
    moment, _, pk = cursor[:60].rpartition("_")
    try:
        key = datetime.fromisoformat(moment), int(pk)
    except (ValueError, OverflowError):
        key = datetime.min, 0  # noqa: DTZ901 - replaced below
    if key[0].tzinfo is None or not pk.isdecimal() or len(pk) > 18:  # noqa: PLR2004 - of a bigint
        raise Invalid({"before": ["Is not a cursor of this list: start without one"]})
    return key
