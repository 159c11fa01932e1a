"""Folded rows: rows that are equal in some columns, counted per period."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from django.db.models import BigIntegerField, Count, F, Func, Max, Min, Model, QuerySet, Sum

# Folded rows of one list at most: a longer time range has longer periods.
MAX_FOLDS: Final = 2_000
# Periods of time ranges up to a length, and those of longer ranges.
_PERIODS: Final = (
    (timedelta(hours=1), timedelta(minutes=5)),
    (timedelta(days=2), timedelta(hours=1)),
)
_LONGEST: Final = timedelta(days=1)
M = TypeVar("M", bound=Model)


class _Period(Func):
    """The number of the period of a moment since 1970, computed by the database itself."""

    output_field = BigIntegerField()

    def __init__(self, moment: str, seconds: int) -> None:
        super().__init__(F(moment))
        self.seconds = int(seconds)

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        """Return the expression for SQLite, which stores moments as text in UTC."""
        # Twice escaped: Django formats the template, and then the statement.
        template = f"(CAST(strftime('%%%%s', %(expressions)s) AS INTEGER) / {self.seconds})"
        return self.as_sql(compiler, connection, template=template, **extra)

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        """Return the expression for PostgreSQL."""
        template = f"(floor(extract(epoch from %(expressions)s) / {self.seconds})::bigint)"
        return self.as_sql(compiler, connection, template=template, **extra)


@dataclass(frozen=True)
class Fold:
    """Rows of a period with equal values in the folded columns.

    `start`: of the period; `count`: their number; `first`, `last`: their moments; `newest`: the
    primary key of the newest of them.
    """

    values: tuple[Any, ...]
    start: datetime
    count: int
    first: datetime
    last: datetime
    newest: int


def period_of(length: timedelta) -> timedelta:
    """Return the length of the periods for a time range of a length."""
    return next((period for most, period in _PERIODS if length <= most), _LONGEST)


def start_of(moment: datetime, period: timedelta) -> datetime:
    """Return the start of the period that has a moment."""
    seconds = int(period.total_seconds())
    return datetime.fromtimestamp(moment.timestamp() // seconds * seconds, UTC)


def fold_rows(
    rows: QuerySet[M],
    columns: Sequence[str],
    period: timedelta,
    *,
    first: str,
    last: str,
    count: str = "",
) -> list[Fold]:
    """Return the rows folded by columns and periods, the newest first, at most `MAX_FOLDS`.

    `first`, `last`: the columns with the moments of a row; `count`: the column with the number of
    events that a row stands for, "" for one.
    """
    seconds = int(period.total_seconds())
    events = Sum(count) if count else Count("pk")
    groups = (
        rows.order_by()
        .annotate(fold_period=_Period(last, seconds))
        .values(*columns, "fold_period")
        .annotate(
            fold_count=events, fold_first=Min(first), fold_last=Max(last), fold_newest=Max("pk")
        )
        .order_by("-fold_last", "-fold_newest")
    )
    return [
        Fold(
            tuple(group[column] for column in columns),
            datetime.fromtimestamp(group["fold_period"] * seconds, UTC),
            group["fold_count"], group["fold_first"], group["fold_last"], group["fold_newest"],
        )
        for group in groups[:MAX_FOLDS]
    ]  # fmt: skip
