"""Faults of queries: what cannot be computed ends its query, not the batch of all the others.

A node remembers a query that failed until it leaves the table, so that its windows do not continue
with records missing, and reports it in every batch, so that the control plane can end the query.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

from controlplane.wire.limits import TimeLimit, call_seconds, time_limit
from workers.pipeline.engine.store import Store, read_json, write_json

FAULTS: Final = "faults"
_LONGEST: Final = 250
# A call that no signal interrupts ends its process so long after twice its limit (s), when a probe
# would have killed it.
_ENDS_LATER_S: Final = 5.0
# Samples of so many queries are kept by a node; a page shows one query at a time.
_KEPT_SAMPLES: Final = 32
# Samples that a node reports in one batch, in bytes: they travel in each batch's telemetry.
_REPORTED_BYTES: Final = 16_384


class FaultReason(NamedTuple):
    """Why a query cannot be computed.

    `why`: type and message of the exception; `stage` of the engine; `sample`: the input there, a
    JSON array of records or of rows of state, empty if there is none.
    """

    why: str
    stage: str = ""
    sample: str = ""


# By query: its incarnation, and the fault.
Faults = dict[int, tuple[int, FaultReason]]


class QueryFault(Exception):
    """Something that a query requests cannot be computed.

    `queries`: of which one, empty for all that share the computation.
    """

    def __init__(self, why: str, query: int | None = None) -> None:
        super().__init__(why[:_LONGEST])
        self.queries = () if query is None else (query,)


def reason_of(error: BaseException) -> str:
    """Return type and message of an exception in at most 250 characters; of a fault its message."""
    if isinstance(error, QueryFault):
        return str(error)
    return f"{type(error).__name__}: {error}"[:_LONGEST]


@contextmanager
def user_code(name: str, query: int | None = None) -> Iterator[None]:
    """Convert what a user's function or aggregate raises to a fault of its query.

    The calls on one batch of records together have a time limit (`limits.call_seconds`). Code that
    no signal interrupts ends the process; the next attempt at the task finds the query.
    """
    seconds = call_seconds()
    try:
        with time_limit(seconds, end_after_s=2 * seconds + _ENDS_LATER_S):
            yield
    except (MemoryError, KeyboardInterrupt):
        # Possibly a shortage of the machine: the caller retries with fewer records.
        raise
    except TimeLimit as error:
        why = f"{name} took longer than {seconds:g} s: make it faster, or raise WEIR_CALL_SECONDS"
        raise QueryFault(why, query) from error
    except BaseException as error:
        # SystemExit, too: `sys.exit()` would end the worker.
        raise QueryFault(f"{name} raised {type(error).__name__}: {error}", query) from error


def read_faults(store: Store, incarnations: Mapping[int, int]) -> Faults:
    """Return the queries that failed on this node and are still in the table, same incarnation."""
    result = {
        int(query): (incarnation, FaultReason(*fault))
        for query, (incarnation, fault) in read_json(store, FAULTS).items()
    }
    return {query: item for query, item in result.items() if incarnations.get(query) == item[0]}


def write_faults(store: Store, faults: Faults) -> None:
    """Write the faults to the node's state."""
    kept = {
        str(query): (incarnation, fault if index < _KEPT_SAMPLES else fault._replace(sample=""))
        for index, (query, (incarnation, fault)) in enumerate(faults.items())
    }
    write_json(store, FAULTS, kept)


def fault_rows(faults: Faults) -> list[tuple[int, int, str, str, str]]:
    """Return query, incarnation, reason, stage and sample of faults; samples are limited."""
    rows, left = [], _REPORTED_BYTES
    for query, (incarnation, fault) in faults.items():
        sample = fault.sample if len(fault.sample) <= left else ""
        left -= len(sample)
        rows.append((query, incarnation, fault.why, fault.stage, sample))
    return rows
