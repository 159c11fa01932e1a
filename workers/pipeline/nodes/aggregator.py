"""A node as merge node: it reads what the tasks of its queries gave out in the batch before."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from controlplane.wire import keys
from controlplane.wire.aggregates.state_schema import Form, from_bytes, named
from workers.pipeline.engine.assignment.tasks import Member
from workers.pipeline.engine.failures.fault import Fault
from workers.pipeline.engine.failures.isolation import AGGREGATOR, attempted, no_sample
from workers.pipeline.engine.final_aggregation import merged_parts, widen
from workers.pipeline.engine.storage.idle_streams import Clock
from workers.pipeline.engine.storage.widening import Widening

if TYPE_CHECKING:
    from workers.pipeline.nodes.node_batch import Turn


def merged(turn: "Turn", marks: Mapping[int, int], clock: Clock) -> list[tuple[str, Form, Any]]:
    """Return the windows that the node has merged anew, by form.

    A part comes to the merge node one batch after it was given out: by then all nodes have
    written theirs, whoever was first. A replay reads the same. `marks`: what the node knew at the
    end of that batch, as all others did, unless records wait somewhere; then no window is closed.
    `clock`: what it knew of the log then.
    """
    every = turn.table.merges_of_node(turn.input.node)
    members = {query: one for query, one in every.items() if query not in turn.faults}
    unreadable: dict[int, Fault] = {}
    batch = turn.input.head.batch - 1
    parts = _parts(turn, list(members), batch, unreadable) if members else {}
    if turn.widening is not None:
        parts = _widened(turn, turn.widening, members, parts, unreadable)
    closing = {} if turn.input.head.waits else marks
    found, faults = merged_parts(turn.store, members, parts, closing, clock)
    turn.note(unreadable | faults)
    return found


def _widened(
    turn: "Turn",
    widening: Widening,
    members: Mapping[int, Member],
    parts: Mapping[int, dict[str, list[Any]]],
    faults: dict[int, Fault],
) -> dict[int, dict[str, list[Any]]]:
    """Return parts in the present forms of their queries, and bring what is kept into them."""
    widen(turn.store, members, widening, faults)
    found: dict[int, dict[str, list[Any]]] = {}
    for query, tables in parts.items():
        computation = members[query].computation
        assert computation is not None
        work = partial(widening.parts, tables, query, computation)
        for new in attempted(AGGREGATOR, [query], work, faults, no_sample):
            found[query] = new
    return {query: tables for query, tables in found.items() if query not in faults}


def _parts(
    turn: "Turn", queries: list[int], batch: int, faults: dict[int, Fault]
) -> dict[int, dict[str, list[Any]]]:
    """Return the parts of a batch: by query its tables by form's name."""
    pipe = turn.client.pipeline(transaction=False)
    owners = [(query, node) for query in queries for node in range(turn.input.head.nodes)]
    for query, node in owners:
        pipe.xrange(keys.part_key(turn.cluster, query, node), f"{batch}-0", f"{batch}-0")
    found: dict[int, dict[str, list[Any]]] = {}
    entries = cast("list[list[Any]]", pipe.execute())
    for (query, _), rows in zip(owners, entries, strict=True):
        for tables in attempted(AGGREGATOR, [query], partial(_read, rows), faults, no_sample):
            for name, table in tables:
                found.setdefault(query, {}).setdefault(name, []).append(table)
    return {query: tables for query, tables in found.items() if query not in faults}


def _read(rows: list[Any]) -> list[tuple[str, Any]]:
    """Return name of the form and rows of each part."""
    names = [(f.decode().rpartition("#")[0], data) for _, row in rows for f, data in row.items()]
    return [(name, from_bytes(named(name), data)) for name, data in names]
