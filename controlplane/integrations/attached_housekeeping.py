"""Retention of attached jobs' progress: one row per minute after 15 minutes, then none.

A minute becomes one row: the mean of the rates, the duration and phases of the slowest batch (a
chart must not hide a peak), the newest of all other values.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from django.db import transaction
from django.db.models import Count

from controlplane.integrations.attached_jobs import KEPT
from controlplane.models import AttachedJob, AttachedProgress
from controlplane.pagination.chunks import chunks, delete_in_chunks

# Retention of every batch; after it one row a minute.
WHOLE_FOR = timedelta(minutes=15)
# Jobs without a report for so long are deleted with their rows.
JOBS_KEPT = timedelta(days=7)
# Rows of a run: 15 minutes at ten batches a second, a day of minutes, and a reserve; of a user.
MAX_ROWS = 12_000
MAX_ROWS_OF_USER = 300_000
MEAN = ("input", "processed")
OF_SLOWEST = ("duration_ms", "phases")


def prune(now: datetime) -> None:
    """Delete expired rows, and merge older rows to one per minute."""
    AttachedJob.objects.filter(last_seen__lt=now - JOBS_KEPT).delete()
    delete_in_chunks(AttachedProgress.objects.filter(t__lt=now - KEPT))
    thin_out(now)
    _cap()


def thin_out(now: datetime) -> int:
    """Merge the rows of each minute that is old enough; return how many rows were deleted."""
    before = (now - WHOLE_FOR).replace(second=0, microsecond=0)
    old = AttachedProgress.objects.filter(t__lt=before).order_by("query_id", "t")
    keys = old.values_list("query_id", "t", "pk").iterator(chunk_size=2000)
    deleted = 0
    for pks in _crowded(keys):
        with transaction.atomic():
            rows = list(AttachedProgress.objects.filter(pk__in=pks).order_by("t"))
            keep = rows[-1]
            keep.values = merged([row.values for row in rows])
            keep.save(update_fields=["values"])
            others = AttachedProgress.objects.filter(pk__in=[row.pk for row in rows[:-1]])
            deleted += others.delete()[0]
    return deleted


def merged(values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the merged values of several batches of one minute, given oldest first."""
    slowest = max(values, key=lambda sample: sample["duration_ms"])
    kept = dict(values[-1]) | {name: slowest[name] for name in OF_SLOWEST}
    for name in MEAN:
        known = [sample[name] for sample in values if sample[name] is not None]
        kept[name] = sum(known) / len(known) if known else None
    return kept | {"rows": sum(sample["rows"] for sample in values)}


def _crowded(keys: Iterator[tuple[int, datetime, int]]) -> list[list[int]]:
    """Return the ids of the rows of every run and minute that has more than one."""
    crowded = []
    for _, rows in groupby(keys, key=lambda key: (key[0], key[1].replace(second=0, microsecond=0))):
        pks = [pk for _, _, pk in rows]
        if len(pks) > 1:
            crowded.append(pks)
    return crowded


def _cap() -> None:
    for owner, most in (("query_id", MAX_ROWS), ("query__job__owner", MAX_ROWS_OF_USER)):
        rows = AttachedProgress.objects.order_by()
        crowded = rows.values(owner).annotate(count=Count("pk")).filter(count__gt=most)
        for value in list(crowded.values_list(owner, flat=True)):
            newest = rows.filter(**{owner: value}).order_by("-t")
            for pks in chunks(list(newest.values_list("pk", flat=True)[most:])):
                AttachedProgress.objects.filter(pk__in=pks).delete()
