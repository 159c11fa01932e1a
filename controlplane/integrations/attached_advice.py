"""Advice for a run of an attached job, from the progress of its recent batches."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import fmean
from typing import Any, Final

from controlplane.models import AttachedQuery
from controlplane.numbers import compact, milliseconds, percent, size

Values = Mapping[str, Any]
RECENT: Final = timedelta(minutes=15)
# Fewer batches decide nothing; more are not read.
BATCHES, MOST = 10, 100
MANY_PARTITIONS: Final = 16
LARGE_PARTITION: Final = 512 * 2**20
LATE_SHARE: Final = 0.01
GROWTH: Final = 1.1
# The largest partition against the median, in each of the newest batches that report them. Ten
# keys of equal weight for each partition do not collide by chance to so many records.
SKEW: Final = 5
# The longest task against the median: records that cost little time need no advice.
SLOWER, SLOWER_MS = 2, 100
SKEWED_BATCHES: Final = 5
LARGE_SHUFFLE: Final = 1000


@dataclass(frozen=True, slots=True)
class Advice:
    """What to change in a job: cause has the figures, code the rule."""

    code: str
    cause: str
    action: str


def advice_of(query: AttachedQuery) -> list[Advice]:
    """Return advice from the newest batches of a run; none for few batches or an ended run."""
    end = query.last_progress_at
    if end is None or query.over:
        return []
    newest = query.progress.filter(t__gt=end - RECENT).order_by("-t")
    values = newest.values_list("values", flat=True)[:MOST]
    # A batch without rows does not show the work of one.
    rows = [row for row in values if row["rows"]][::-1]
    if len(rows) < BATCHES:
        return []
    stateful = [row for row in rows if row.get("state_rows") is not None]
    summaries = newest.filter(values__tasks__isnull=False).values_list("values__tasks", flat=True)
    return [
        *_behind(rows),
        *skewed(summaries[:SKEWED_BATCHES]),
        *(_of_state(stateful) if len(stateful) == len(rows) else ()),
    ]


def _behind(rows: Sequence[Values]) -> Iterator[Advice]:
    """Yield advice where batches process less than the input."""
    known = [row for row in rows if row["input"] and row["processed"]]
    if len(known) < BATCHES:
        return
    given, done = (fmean(row[name] for row in known) for name in ("input", "processed"))
    if given > GROWTH * done:
        cause = f"Batches process {compact(done)} of {compact(given)} rows/s"
        yield Advice("behind", cause, "add cores, or reduce the work of a row")


def skewed(summaries: Iterable[Values]) -> Iterator[Advice]:
    """Yield advice if in each of the newest summaries one partition has most records.

    Without a record in the median one, there are fewer keys than partitions, heavy or not.
    """
    uneven = [
        tasks
        for tasks in summaries
        if tasks["records"] >= max(LARGE_SHUFFLE, SKEW * tasks["median_records"])
        and tasks["median_records"] > 0
        and tasks["ms"] >= max(SLOWER * tasks["median_ms"], tasks["median_ms"] + SLOWER_MS)
    ]
    if len(uneven) < SKEWED_BATCHES:
        return
    newest = uneven[0]
    cause = (
        f"The largest of {newest['partitions']} partitions reads {compact(newest['records'])}"
        f" records, the median {compact(newest['median_records'])}; the longest task takes"
        f" {milliseconds(newest['ms'])}, the median {milliseconds(newest['median_ms'])}"
    )
    action = (
        "append a random number to the most frequent key, or repartition by more columns; more"
        " partitions do not separate the records of a key"
    )
    yield Advice("skewed_partitions", cause, action)


def _of_state(rows: Sequence[Values]) -> Iterator[Advice]:
    newest = rows[-1]
    partitions = newest.get("state_partitions") or 0
    known = [row["state_updated"] for row in rows if row.get("state_updated") is not None]
    updated = fmean(known) if len(known) == len(rows) else math.inf
    if partitions >= MANY_PARTITIONS and updated < partitions:
        cause = f"A batch changes {compact(updated)} rows, and state has {partitions} partitions"
        action = (
            "set spark.sql.shuffle.partitions to the cores of the executors, with a new checkpoint"
        )
        yield Advice("many_partitions", cause, action)
    if partitions and newest["state_bytes"] / partitions > LARGE_PARTITION:
        cause = f"A partition of the state has {size(newest['state_bytes'] / partitions)}"
        action = "set more spark.sql.shuffle.partitions, with a new checkpoint"
        yield Advice("large_partitions", cause, action)
    if newest["watermark_ms"] is None and newest["state_rows"] > GROWTH * rows[0]["state_rows"]:
        grown = " to ".join(compact(row["state_rows"]) for row in (rows[0], newest))
        cause = f"State grew from {grown} rows, and without a watermark none is removed"
        yield Advice("unbounded_state", cause, "call withWatermark before the aggregation")
    late, read = (sum(row[name] or 0 for row in rows) for name in ("state_dropped", "rows"))
    if late > LATE_SHARE * max(1, read):
        cause = f"{percent(late / max(1, read))} of the rows are dropped as late"
        yield Advice("late_rows", cause, "increase the delay of the watermark")
