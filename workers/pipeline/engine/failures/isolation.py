"""Isolation: a stage of the engine that fails ends the queries that make it fail, and no other.

A stage over many queries is tried with all of them first. If it raises, the set of queries is
halved until those are found that raise alone; all others have the result that they would have
without them. Stages are pure: what they return is saved after they have succeeded.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from controlplane.wire.limits import has_headroom
from workers.pipeline.engine.failures.fault import FaultReason, reason_of

# The stages by the names under which faults report them.
EVALUATE: Final = "evaluate"
ASSIGN: Final = "assign"
COUNT: Final = "count"
MERGE: Final = "merge"
WINDOW: Final = "window"
JOIN: Final = "join"
SAVE: Final = "save"
AGGREGATOR: Final = "aggregator"
EXPORT: Final = "export"
IMPORT: Final = "import"

Result = TypeVar("Result")
# Returns a sample of a query's input as JSON.
Sampler = Callable[[int], str]


@dataclass
class _Position:
    """Where the engine is: the stage, and the queries that it works for."""

    stage: str = ""
    queries: Sequence[int] = ()
    # Is called with each stage and its queries; a probe reports them to its parent process.
    report: Callable[[str, Sequence[int]], None] | None = field(default=None)


# One per process: a Python worker evaluates one node at a time, in its main thread.
_POSITION: Final = _Position()


def enter_stage(stage: str, queries: Sequence[int] | None = None) -> None:
    """Record the current stage and its queries (None: unchanged), for faults to name."""
    _POSITION.stage = stage
    if queries is not None:
        _POSITION.queries = queries
    if _POSITION.report is not None:
        _POSITION.report(stage, _POSITION.queries)


@contextmanager
def report_stages(report: Callable[[str, Sequence[int]], None]) -> Iterator[None]:
    """Call `report` at the beginning of every stage within the block."""
    _POSITION.report = report
    try:
        yield
    finally:
        _POSITION.report = None


def no_sample(_: object) -> str:
    """Return no sample."""
    return ""


def fault_of(error: Exception, sample: Callable[[], str]) -> FaultReason:
    """Return the fault that an exception of the present stage is, with a sample of the input."""
    stage = _POSITION.stage
    try:
        text = sample()
    except Exception:  # noqa: BLE001 - the input may be what cannot be read; the fault names it
        text = ""
    return FaultReason(reason_of(error), stage, text)


def run_stage(
    stage: str,
    queries: Sequence[int],
    work: Callable[[], Result],
    faults: dict[int, FaultReason],
    sample: Callable[[Exception], str],
    reraise: tuple[type[Exception], ...] = (),
) -> list[Result]:
    """Return what `work` returns for queries that share it; none if it raises, for all of them.

    `reraise`: exceptions that are raised on because the caller has a better way to retry. Raises
    `MemoryError` if the process itself is short of memory.
    """
    enter_stage(stage, queries)
    try:
        return [work()]
    except reraise:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a query raises is its fault
        fault, short = fault_of(error, partial(sample, error)), isinstance(error, MemoryError)
    if short and not has_headroom():
        raise MemoryError(f"the worker is out of memory in stage {fault.stage}")
    faults |= dict.fromkeys(queries, fault)
    return []


def run_isolated(
    stage: str,
    queries: Sequence[int],
    work: Callable[[Sequence[int]], Result],
    faults: dict[int, FaultReason],
    sample: Sampler = no_sample,
    reraise: tuple[type[Exception], ...] = (),
) -> list[Result]:
    """Return what `work` returns for the queries: one result, or one per part of a halved set.

    A query for which `work` raises alone gets into `faults` and has no result. `reraise` and what
    is raised: as for `run_stage`.
    """
    left = [query for query in queries if query not in faults]
    if len(left) <= 1:
        return [
            result
            for value in left
            for result in run_stage(
                stage, [value], lambda: work(left), faults, lambda _: sample(left[0]), reraise
            )
        ]
    enter_stage(stage, left)
    try:
        return [work(left)]
    except reraise:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a query raises is its fault
        named = [item for item in getattr(error, "queries", ()) if item in left]
        for query in named:
            faults[query] = fault_of(error, partial(sample, query))
    half = len(left) // 2
    return [
        result
        for part in ([left] if named else (left[:half], left[half:]))
        for result in run_isolated(stage, part, work, faults, sample, reraise)
    ]
