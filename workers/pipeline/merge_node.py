"""A node as merge node: it reads what the tasks of its queries gave out in the batch before."""

from typing import TYPE_CHECKING, Any, cast

from controlplane.wire import keys
from controlplane.wire.forms import Form, from_bytes, named
from workers.pipeline.engine.merging import forget, merged_parts
from workers.pipeline.engine.node import marks_of

if TYPE_CHECKING:
    from workers.pipeline.turn import Turn


def merged(turn: "Turn") -> list[tuple[str, Form, Any]]:
    """Return the windows that the node has merged anew, by form.

    A part comes to the merge node one batch after it was given out: by then all nodes have
    written theirs, whoever was first. A replay reads the same.
    """
    head, node = turn.input.head, turn.input.node
    members = turn.table.merges_of_node(node)
    if head.arriving is not None:
        moved = turn.tables.moved_merges(head.arriving, head.version)
        forget(turn.store, [query for query, to in moved.items() if to == node])
    parts = _parts(turn, list(members), head.batch - 1) if members else {}
    return merged_parts(turn.store, members, parts, marks_of(turn.store))


def _parts(turn: "Turn", queries: list[int], batch: int) -> dict[int, dict[str, list[Any]]]:
    """Return the parts of a batch: by query its tables by form's name."""
    pipe = turn.client.pipeline(transaction=False)
    owners = [(query, node) for query in queries for node in range(turn.slots)]
    for query, node in owners:
        pipe.xrange(keys.part_key(turn.cluster, query, node), f"{batch}-0", f"{batch}-0")
    found: dict[int, dict[str, list[Any]]] = {}
    entries = cast("list[list[Any]]", pipe.execute())
    for (query, _), rows in zip(owners, entries, strict=True):
        for _, fields in rows:
            for field, data in fields.items():
                name = field.decode().rpartition("#")[0]
                table = from_bytes(named(name), data)
                found.setdefault(query, {}).setdefault(name, []).append(table)
    return found
