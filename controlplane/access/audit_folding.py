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
from pydantic import AwareDatetime

from controlplane.access.audit import REFUSED, ROUTINE
from controlplane.models import AuditEntry, Cluster
from controlplane.pagination.cursors import Cursor, Number
from controlplane.pagination.folding import Fold, fold_rows, period_of, start_of
from controlplane.pagination.listing import Listing
from controlplane.pagination.pages import read_by_id

PER_PAGE: Final = 50
MACHINE: Final = ~Q(actor__in=User.objects.values("username")) | Q(action__in=ROUTINE)
# Entries of people that changed nothing.
_NO_CHANGE: Final = (REFUSED, "login", "login.failed", "login.locked", "login.refused", "logout")
_COLUMNS: Final = ("actor", "action", "cluster")
# Periods that are folded first; then twice as many, until a page is full.
_FIRST_PERIODS: Final = 6


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

    `people`: the number of people's entries of the whole time range, of which `changes` are
    changes; `machines`: of the others.
    """

    rows: Sequence[AuditRow]
    next: str
    people: int
    machines: int
    changes: int


# A row by its order: moment and id, 0 for folded actions.
_Key = tuple[datetime, int]
_CURSOR: Final = Cursor[_Key](tuple[AwareDatetime, Number])


def folded_page(
    listing: Listing[AuditEntry, AuditEntry],
    start: datetime,
    stop: datetime,
    after: str = "",
    *,
    total: int | None = None,
) -> FoldedPage:
    """Return a page of a listing with folded machine actions, of the time from start to stop.

    `after`: the cursor of the page, "" for the first; `total`: the number of entries of the
    listing, None to count them. Raises `Invalid` for an invalid cursor.
    """
    bound, period = _CURSOR.place(after) if after else None, period_of(stop - start)
    last = stop if bound is None else max(start, min(stop, bound[0]))
    folds = _Folds(listing.rows.filter(MACHINE), period, start, bound).newest(last)
    people = listing.rows.filter(~MACHINE)
    of_people = people.count()
    rows: list[tuple[_Key, AuditEntry | Fold]] = [
        ((entry.at, entry.pk), entry) for entry in (_entries(people, bound) if of_people else [])
    ]
    rows += [((fold.last, 0), fold) for fold in folds]
    rows.sort(key=lambda row: row[0], reverse=True)
    end = PER_PAGE
    # Folds of one moment stay together: a cursor cannot stand between them.
    while 0 < end < len(rows) and rows[end][0] == rows[end - 1][0]:
        end += 1
    shown = rows[:end]
    cursor = _CURSOR.text(shown[-1][0]) if len(rows) > end else ""
    return FoldedPage(
        _audit_rows([row for _, row in shown], period, listing.row), cursor,
        of_people, (listing.rows.count() if total is None else total) - of_people,
        people.exclude(action__in=_NO_CHANGE).count() if of_people else 0,
    )  # fmt: skip


@dataclass(frozen=True)
class _Folds:
    """The folded actions of a time range before a bound.

    Those of the newest periods that fill a page are folded, not all of the range: a month has
    hundred thousand actions.
    """

    rows: QuerySet[AuditEntry]
    period: timedelta
    start: datetime
    bound: _Key | None

    def newest(self, last: datetime) -> list[Fold]:
        """Return the newest folds up to a moment, more than a page has, or all of them."""
        stop, length = start_of(last, self.period) + self.period, _FIRST_PERIODS * self.period
        folds: list[Fold] = []
        while stop > self.start and not _fills_page(folds):
            begin = stop - length
            # SQLite uses the first limits of a column that a statement has, so these go first.
            part = AuditEntry.objects.filter(at__gte=begin, at__lt=stop) & self.rows
            older = fold_rows(part, _COLUMNS, self.period, first="at", last="at")
            folds += [fold for fold in older if self.bound is None or (fold.last, 0) < self.bound]
            stop, length = begin, 2 * length
        return folds


def _fills_page(folds: Sequence[Fold]) -> bool:
    """Return True if older folds cannot be on the page: those of one moment stay together."""
    return len(folds) > PER_PAGE and folds[PER_PAGE - 1].last != folds[-1].last


def _entries(people: QuerySet[AuditEntry], bound: _Key | None) -> list[AuditEntry]:
    rows = people.order_by("-at", "-pk")
    if bound is not None:
        moment, pk = bound
        rows = rows.filter(at__lte=moment).exclude(Q(at=moment) & Q(pk__gte=pk))
    return read_by_id(rows, rows[: PER_PAGE + 1])


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
