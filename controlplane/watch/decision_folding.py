"""Decisions of a time range with folded repeats: equal outcomes of a period are one row."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from controlplane.models import Decision
from controlplane.pagination.folding import Fold, fold_rows
from controlplane.pagination.listing import Listing, PlaceListing

_COLUMNS: Final = ("loop", "code", "proposal")


@dataclass(frozen=True)
class FoldedDecision:
    """Decisions of a loop with the same reason and proposal; `decision`: the newest of them.

    `repeats`: how often the loop decided so, from `first` to `last`.
    """

    decision: Decision
    repeats: int
    first: datetime
    last: datetime


def folded_decisions(
    listing: Listing[Decision, Decision], period: timedelta
) -> PlaceListing[FoldedDecision]:
    """Return a listing with its decisions folded per period, the newest first."""
    folds = fold_rows(
        listing.rows, _COLUMNS, period, first="first_at", last="last_at", count="count"
    )
    return PlaceListing(range(len(folds)), partial(_rows, folds), listing.filters)


def _rows(folds: Sequence[Fold], places: Sequence[int]) -> list[FoldedDecision]:
    shown = [folds[place] for place in places]
    newest: dict[int, Any] = Decision.objects.in_bulk([fold.newest for fold in shown])
    return [
        FoldedDecision(newest[fold.newest], fold.count, fold.first, fold.last)
        for fold in shown if fold.newest in newest
    ]  # fmt: skip
