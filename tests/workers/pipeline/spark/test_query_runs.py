"""A streaming query starts again in its driver if a Python process of Spark has died."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from workers.pipeline.spark.query_runs import QueryRuns


class Failure(Exception):
    """What PySpark makes of an exception of the JVM."""

    def __init__(self, text: str, cause: "Failure | None" = None) -> None:
        super().__init__(text)
        self._desc, self._cause = text, cause


PIPE = Failure("Broken pipe", Failure("java.io.IOException: Broken pipe"))
END = Failure("java.io.EOFException")
CRASHED = Failure("Job aborted", Failure("org.apache.spark.SparkException: crashed", END))
REDIS = Failure("failed", Failure("org.apache.spark.api.python.PythonException: ConnectionError"))


class Ended:
    """A query that has ended; `batches`: whether it finished some before."""

    isActive = False  # noqa: N815 - Spark's name

    def __init__(self, error: Exception | None, *, batches: bool = True) -> None:
        self.lastProgress = {"batchId": 7} if batches else None
        self._error = error

    def exception(self) -> Exception | None:
        return self._error


class Active:
    """A query that runs until it is stopped."""

    def __init__(self) -> None:
        self.isActive = True

    def stop(self) -> None:
        self.isActive = False


class Refused:
    """A query that cannot be started."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def runs_of(queries: Sequence[Any]) -> tuple[QueryRuns, Iterator[Any]]:
    """Return runs of these queries, and those that were not started."""
    left = iter(queries)

    def start() -> Any:
        query = next(left)
        if isinstance(query, Refused):
            raise query.error
        return query

    return QueryRuns(start), left


@pytest.mark.parametrize("lost", [PIPE, CRASHED])
def test_a_query_whose_process_died_starts_again(lost: Failure) -> None:
    """As often as it finishes batches in between."""
    runs, left = runs_of([*(Ended(lost) for _ in range(9)), Ended(REDIS), Active()])
    assert runs.wait(threading.Event()) is REDIS
    assert isinstance(next(left), Active)


def test_a_query_that_finishes_no_batch_ends_its_driver() -> None:
    """Another driver may help; three of them are a crash loop."""
    runs, left = runs_of([Ended(PIPE, batches=False)] * 11)
    assert runs.wait(threading.Event()) is PIPE
    assert len(list(left)) == 1


def test_a_start_that_meets_another_dead_process_is_repeated() -> None:
    """Spark notices that a daemon has died when it needs it."""
    runs, _ = runs_of([Ended(PIPE), Refused(PIPE), Ended(REDIS)])
    assert runs.wait(threading.Event()) is REDIS
    runs, left = runs_of([Ended(PIPE), *(Refused(PIPE) for _ in range(10))])
    assert runs.wait(threading.Event()) is PIPE
    assert len(list(left)) == 1


def test_an_end_without_a_reason_is_an_error() -> None:
    runs, _ = runs_of([Ended(None)])
    assert isinstance(runs.wait(threading.Event()), RuntimeError)


def test_a_stop_stops_the_query() -> None:
    stop = threading.Event()
    stop.set()
    runs, _ = runs_of([Active()])
    assert runs.wait(stop) is None
    assert not runs.query.isActive
