"""The Spark engine of the Lab: a Spark job per trial, as many at once as the master has cores.

Each task calls the same functions as the Lab's worker, with the same seeds, so the table is the
same, except for measured times. Rows arrive as soon as their trial has ended. The driver runs in
the child process of the run: cancelling a run kills the child with the JVM and its tasks.
"""

import tempfile
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path

from pyspark import SparkContext

from algorithms.lab.experiment import Emit, ResultRow
from algorithms.lab.experiments import Table
from algorithms.vocabulary import Progress
from controlplane.lab.engines import EngineUnavailable, Sweep
from controlplane.processes.runtime.errors import CheckFailed
from workers.lab.spark_sessions import session_at
from workers.lab.sweeps.trials import TrialTask, compute_trial

_NAME = "weir-lab"


def distribute(sweep: Sweep, progress: Progress, emit: Emit) -> Table:
    """Return the table of a sweep, whose trials are computed on its master.

    Raises what a trial raises, and `EngineUnavailable` without Java.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            with session_at(sweep.master, Path(folder), _NAME) as session:
                return _computed(session.sparkContext, sweep, progress, emit)
        except CheckFailed as missing:
            raise EngineUnavailable(str(missing)) from missing


def _computed(context: SparkContext, sweep: Sweep, progress: Progress, emit: Emit) -> Table:
    chosen = sweep.experiment
    series = chosen.checked_series(sweep.series)
    requests = chosen.trial_requests(sweep.parameters, sweep.values, series)
    progress(0.0)
    rows: dict[int, list[ResultRow]] = {}
    passed = 0.0
    with ThreadPoolExecutor(max_workers=max(1, context.defaultParallelism)) as pool:
        jobs: dict[Future[list[ResultRow]], int] = {}
        for number, request in enumerate(requests):
            task = TrialTask(
                chosen.planner, chosen.name, request.point.to_mapping(), request.seed, series
            )
            jobs[pool.submit(_run_task, context, task)] = number
        try:
            for job in as_completed(jobs):
                number = jobs[job]
                rows[number] = job.result()
                for row in rows[number]:
                    emit(row)
                passed += requests[number].share
                progress(min(1.0, passed))
        except BaseException:
            # The first error ends the run: trials that wait do not start.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return chosen.table_of([row for number in range(len(requests)) for row in rows[number]])


def _run_task(context: SparkContext, task: TrialTask) -> list[ResultRow]:
    """Return the rows of a trial, computed by one Spark task."""
    result: list[ResultRow] = context.parallelize([task], 1).flatMap(compute_trial).collect()
    return result
