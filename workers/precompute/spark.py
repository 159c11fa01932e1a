"""Learning on a Spark session: each round's jobs run in parallel, as in section 6 of the paper."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from algorithms.migration.future.learning import Runner
from controlplane.runtime.java import find_java


def runner_on(session: SparkSession) -> Runner:
    """Return a runner of jobs on the session, one Spark task each."""

    def run(function: Callable[[Any], Any], jobs: Sequence[Any]) -> Iterable[Any]:
        spread = session.sparkContext.parallelize(list(jobs), len(jobs))
        result: list[Any] = spread.map(function).collect()
        return result

    return run


@contextmanager
def session_at(master: str, folder: Path) -> Iterator[SparkSession]:
    """Yield a session on a master: `local[2]`, or the URL of a cluster; it is stopped at the end.

    `folder`: for a stand-in Java home, if one is needed. Raises `CheckFailed` without Java.
    """
    java = find_java(os.environ, folder / "java", lambda line: print(line, file=sys.stderr))
    os.environ["JAVA_HOME"] = str(java.home)
    # The tasks need the packages of this Python.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("weir-precompute")
    # The progress bar shows the share; Spark's own bars would overwrite it.
    for hidden in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(hidden, "false")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
