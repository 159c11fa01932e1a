"""Quarantine: a node finds the queries that end its process, and evaluates the batch without them.

What is found is kept in Redis under the batch's number at once, so that a driver that is restarted
meanwhile does not search again; after the batch it is in the node's state, like every fault.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol, cast, runtime_checkable

from controlplane.wire import keys
from workers.pipeline.engine.evaluation.samples import sample_of_records
from workers.pipeline.engine.failures.fault import Fault
from workers.pipeline.engine.failures.probe import culprits_of
from workers.pipeline.engine.store import Store
from workers.pipeline.exchange.envelope import records_of
from workers.pipeline.reports.activity import count_step

if TYPE_CHECKING:
    from workers.pipeline.nodes.node_batch import Turn

_KEPT_SECONDS: Final = 86_400
_ELSEWHERE: Final = Fault("not evaluated in this probe")


class _Copy(dict[str, bytes]):
    """A node's state during a probe; what is written is lost with the child."""

    def put(self, name: str, value: bytes) -> None:
        self[name] = value

    def remove(self, name: str) -> None:
        self.pop(name, None)


@runtime_checkable
class _Whole(Protocol):
    def everything(self) -> dict[str, bytes]:
        """Return all that is kept, by name."""


def quarantined(turn: "Turn") -> dict[int, Fault]:
    """Return the queries that end the process of a node in this batch, with the reason."""
    node, batch = turn.input.node, turn.input.head.batch
    key = keys.quarantine_key(turn.cluster, batch)
    kept = cast("bytes | None", turn.client.hget(key, str(node)))
    known = {int(query): Fault(*row) for query, row in json.loads(kept or b"{}").items()}
    there = {*turn.tasks.members, *turn.table.merges_of_node(node)}
    queries = there - known.keys() - turn.faults.keys()
    # The child must not use the connection to the JVM, so all of the state is read before.
    state, before = _copied(turn.store), dict(known)

    def evaluate(some: Collection[int]) -> None:
        others = dict.fromkeys(queries - set(some), _ELSEWHERE)
        head = replace(turn.input.head, attempt=1)
        probed = replace(turn.input, head=head)
        output = replace(turn, store=_Copy(state), input=probed, excluded=before | others).run()
        for _ in output.frames():
            # Packing what has changed is work for all queries, too.
            pass

    def keep(found: Mapping[int, Fault]) -> None:
        # The agent sees that the batch makes progress.
        count_step(turn.client, turn.cluster)
        if found.keys() - known.keys():
            known.update(found)
            turn.client.hset(key, str(node), json.dumps(known))
            turn.client.expire(key, _KEPT_SECONDS)

    found = culprits_of(queries, evaluate, keep)
    keep(found)
    return {query: _with_sample(turn, query, fault)
            for query, fault in known.items() if query in there}  # fmt: skip


def _copied(store: Store) -> dict[str, bytes]:
    if isinstance(store, _Whole):
        return store.everything()
    assert isinstance(store, Mapping), f"{type(store).__name__} does not list what it keeps"
    return dict(store)


def _with_sample(turn: "Turn", query: int, fault: Fault) -> Fault:
    """Return the fault with the first records of the query's streams in this batch."""
    streams = frozenset(turn.table.table.queries[query].streams)
    for records in records_of(turn.input.envelopes):
        if not records.streams.isdisjoint(streams):
            return fault._replace(sample=sample_of_records(records, streams))
    return fault
