"""Decisions of a time range with folded repeats: equal outcomes of a period are one row."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

from controlplane.models import Decision
from controlplane.pagination.folding import Fold, fold_rows
from controlplane.pagination.listing import Listing, PlaceListing

_COLUMNS: Final = ("loop", "code", "proposal")


def folded_decisions(
    listing: Listing[Decision, Decision], period: timedelta
) -> PlaceListing[Decision]:
    """Return a listing with its decisions folded per period, the newest first.

    The newest of each fold has the number and the times of all.
    """
    folds = fold_rows(
        listing.rows, _COLUMNS, period, first="first_at", last="last_at", count="count"
    )
    return PlaceListing(range(len(folds)), partial(_rows, folds), listing.filters)


def _rows(folds: Sequence[Fold], places: Sequence[int]) -> list[Decision]:
    shown = [folds[place] for place in places]
    newest: dict[int, Any] = Decision.objects.in_bulk([fold.newest for fold in shown])
    known = [(newest[fold.newest], fold) for fold in shown if fold.newest in newest]
    for row, fold in known:
        row.count, row.first_at, row.last_at = fold.count, fold.first, fold.last
    return [row for row, _ in known]
