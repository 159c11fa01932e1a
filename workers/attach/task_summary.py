"""The partitions of a run's newest batch, from Spark's status store in the JVM of the session.

Only the reporting thread calls it. Spark's interface for this is not public: where it is missing
(Spark Connect, other versions) or fails, nothing is reported.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Dict, Final  # noqa: UP035 - read at run time, also by 3.9

from .events import PROGRESS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Summary = Dict[str, int]  # noqa: UP006

# A run is looked at once in this time; each look is some ten calls of the JVM for a stage.
EVERY_SECONDS: Final = 30.0
MOST_RUNS: Final = 20
# A micro-batch has a job, or one for each of its stages; the newest may still run.
MOST_JOBS: Final = 4
MOST_STAGES: Final = 8
# Spark sorts the tasks of a stage for its quantiles.
MOST_TASKS: Final = 10_000
_HALF_AND_ALL: Final = (0.5, 1.0)


class TaskSummaries:
    """Adds to a progress of each run, once in 30 s, the summary of its newest batch's tasks."""

    def __init__(self, read: Callable[[str], Summary | None]) -> None:
        self._read = read
        self._looked: dict[str, float] = {}

    def __call__(self, text: str) -> str:
        """Return an event as JSON, with `tasks` in its progress if they are due and known."""
        event = json.loads(text)
        now = time.monotonic()
        self._looked = {run: t for run, t in self._looked.items() if now - t < EVERY_SECONDS}
        known = event["run"] in self._looked or len(self._looked) >= MOST_RUNS
        if event["kind"] != PROGRESS or known:
            return text
        self._looked[event["run"]] = now
        try:
            summary = self._read(event["run"])
        except Exception:  # noqa: BLE001 - the job is worth more than its report
            return text
        if summary is None:
            # The client may be newer than its Weir.
            return text
        event["progress"]["tasks"] = summary
        return json.dumps(event, separators=(",", ":"))


def largest_shuffle(spark: SparkSession, run: str) -> Summary | None:
    """Return the finished stage of a run's newest jobs that reads most records from a shuffle.

    `partitions`: its tasks; `records` and `ms`: what the largest task read, and how long the
    longest took; `median_records` and `median_ms`. None if no stage reads from a shuffle.
    """
    context: Any = spark.sparkContext
    store = context._jsc.sc().statusStore()  # noqa: SLF001 - PySpark has no other access
    # Spark gives the jobs of a streaming query its run's id as their group.
    tracker = context.statusTracker()
    # A run has up to a thousand, the newest first or last; each that Python reads is a call.
    jobs = tracker._jtracker.getJobIdsForGroup(run)  # noqa: SLF001
    context._gateway.jvm.java.util.Arrays.sort(jobs)  # noqa: SLF001
    infos = (tracker.getJobInfo(job) for job in jobs[-MOST_JOBS:])
    numbers = sorted(number for info in infos if info for number in info.stageIds)
    stages = [store.lastStageAttempt(number) for number in numbers[-MOST_STAGES:]]
    read = [stage for stage in stages if _is_summarised(stage)]
    if not read:
        return None
    return _summary(context, store, max(read, key=lambda stage: stage.shuffleReadRecords()))


def _is_summarised(stage: Any) -> bool:
    finished = str(stage.status()) == "COMPLETE" and stage.shuffleReadRecords() > 0
    return finished and 1 < stage.numTasks() <= MOST_TASKS


def _summary(context: Any, store: Any, stage: Any) -> Summary | None:
    gateway = context._gateway  # noqa: SLF001
    points = gateway.new_array(gateway.jvm.double, len(_HALF_AND_ALL))
    for i, point in enumerate(_HALF_AND_ALL):
        points[i] = point
    summary = store.taskSummary(stage.stageId(), stage.attemptId(), points)
    if not summary.isDefined():
        return None
    records = summary.get().shuffleReadMetrics().readRecords()
    took = summary.get().duration()
    return {
        "partitions": stage.numTasks(),
        "records": int(records.apply(1)),
        "median_records": int(records.apply(0)),
        "ms": int(took.apply(1)),
        "median_ms": int(took.apply(0)),
    }
