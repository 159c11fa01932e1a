"""Faults of queries: what cannot be computed ends its query, not the batch of all the others.

A node remembers a query that failed until it leaves the table, so that its windows do not go on
with records missing, and says so in every batch, so that whoever ends the query hears it.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from workers.pipeline.engine.pages import Store

FAULTS: Final = "faults"
_LONGEST: Final = 250
# By query its run and what went wrong.
Faults = dict[int, tuple[int, str]]


class QueryFault(Exception):
    """Something that a query asks for cannot be computed.

    `queries`: of which one, empty for all that share the computation.
    """

    def __init__(self, why: str, query: int | None = None) -> None:
        super().__init__(why[:_LONGEST])
        self.queries = () if query is None else (query,)


@contextmanager
def users_code(name: str, query: int | None = None) -> Iterator[None]:
    """Make what a user's function or aggregate raises a fault of its query."""
    try:
        yield
    except MemoryError:
        # The machine's trouble: the batch is tried again.
        raise
    except Exception as error:
        raise QueryFault(f"{name} raised {type(error).__name__}: {error}", query) from error


def read_faults(store: "Store", runs: Mapping[int, int]) -> Faults:
    """Return the queries that failed on this node and are still in the table, in the same run."""
    row = json.loads(store.get(FAULTS) or b"{}")
    found = {int(query): (run, why) for query, (run, why) in row.items()}
    return {query: one for query, one in found.items() if runs.get(query) == one[0]}


def keep_faults(store: "Store", faults: Faults) -> None:
    """Remember them for the batches to come."""
    written = json.dumps(faults).encode()
    if written != (store.get(FAULTS) or b"{}"):
        store.put(FAULTS, written)
