"""Retention of archived windows: by event time and by number per query, in bounded steps.

A live query keeps windows that start within `retention_s` of its newest one; an ended query keeps
its windows for `retention_s` after its end. `retention_windows` bounds both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from controlplane.archive import windows as archive
from controlplane.archive.models import ArchivedQuery
from controlplane.models import Query
from controlplane.wire.results.places import start_bytes

# Windows that one pass deletes at most; the next one continues.
MOST: Final = 50_000
# Queries per statement.
_CHUNK: Final = 500
# A query's oldest windows are searched for once this share of its retention has passed.
_SLACK: Final = 100


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention of a query: ms of event time, windows; when it ended (ms), None if live."""

    ms: int
    windows: int
    ended_ms: int | None


def prune_windows(now: datetime) -> int:
    """Delete archived windows beyond the retention of their queries; return how many."""
    now_ms, deleted, last = _ms(now), 0, 0
    while deleted < MOST:
        rows = list(ArchivedQuery.objects.filter(pk__gt=last).order_by("pk")[:_CHUNK])
        if not rows:
            break
        last, kept = rows[-1].pk, _retentions([row.pk for row in rows])
        for row in rows:
            deleted += _prune(row, kept.get(row.pk), now_ms, max(1, MOST - deleted))
    return deleted


def _retentions(queries: list[int]) -> Mapping[int, Retention]:
    rows = Query.objects.filter(pk__in=queries).values_list(
        "pk", "retention_s", "retention_windows", "ended_at"
    )
    return {
        pk: Retention(seconds * 1000, windows, None if ended is None else _ms(ended))
        for pk, seconds, windows, ended in rows
    }


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _prune(row: ArchivedQuery, kept: Retention | None, now_ms: int, most: int) -> int:
    if kept is None or (kept.ended_ms is not None and kept.ended_ms + kept.ms < now_ms):
        deleted = archive.delete_oldest(row.pk, most)
        if deleted < most:
            row.delete()
        return deleted
    deleted = archive.delete_oldest(row.pk, min(most, max(0, row.windows - kept.windows)))
    before_ms = row.newest_ms - kept.ms
    due = row.pruned_ms is None or before_ms - row.pruned_ms > kept.ms // _SLACK
    if due and deleted < most:
        left = most - deleted
        aged = archive.delete_before(row.pk, start_bytes(before_ms), left)
        if aged < left:
            ArchivedQuery.objects.filter(pk=row.pk).update(pruned_ms=before_ms)
        deleted += aged
    return deleted
