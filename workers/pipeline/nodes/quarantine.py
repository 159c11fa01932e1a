"""Quarantine: a node finds the queries that end its process, and evaluates the batch without them.

What is found is kept in Redis under the batch's number immediately, so that a driver that is
restarted meanwhile does not search again; after the batch it is in the node's state, like every
fault.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from controlplane.wire import keys
from workers.pipeline.engine.evaluation.records import sample_of_records
from workers.pipeline.engine.failures.fault import FaultReason
from workers.pipeline.engine.failures.probe import find_culprits
from workers.pipeline.engine.store import Store
from workers.pipeline.exchange.envelope import records_of
from workers.pipeline.nodes.state_store import NodeStore
from workers.pipeline.reports.activity import count_step

if TYPE_CHECKING:
    from workers.pipeline.nodes.node_batch import NodeBatch

_KEPT_SECONDS: Final = 86_400
_NOT_PROBED: Final = FaultReason("not evaluated in this probe")


class _ScratchStore(dict[str, bytes]):
    """A copy of a node's state for a probe; its changes end with the child."""

    def put(self, name: str, value: bytes) -> None:
        self[name] = value

    def remove(self, name: str) -> None:
        self.pop(name, None)


def find_quarantined(node_batch: "NodeBatch") -> dict[int, FaultReason]:
    """Return the queries that end the process of a node in this batch, with the reason."""
    node, batch = node_batch.input.node, node_batch.input.header.batch
    key = keys.quarantine_key(node_batch.cluster, batch)
    kept = cast("bytes | None", node_batch.client.hget(key, str(node)))
    known = {int(query): FaultReason(*row) for query, row in json.loads(kept or b"{}").items()}
    there = {*node_batch.tasks.members, *node_batch.table.aggregated_by_node(node)}
    queries = there - known.keys() - node_batch.faults.keys()
    # The child must not use the connection to the JVM, so all of the state is read before.
    state, before = _copied(node_batch.store), dict(known)

    def evaluate(some: Collection[int]) -> None:
        others = dict.fromkeys(queries - set(some), _NOT_PROBED)
        header = replace(node_batch.input.header, attempt=1)
        probed = replace(node_batch.input, header=header)
        output = replace(
            node_batch, store=_ScratchStore(state), input=probed, excluded=before | others
        ).run()
        for _ in output.frames():
            # Packing what has changed is work for all queries, too.
            pass

    def keep(result: Mapping[int, FaultReason]) -> None:
        # The agent sees that the batch makes progress.
        count_step(node_batch.client, node_batch.cluster)
        if result.keys() - known.keys():
            known.update(result)
            node_batch.client.hset(key, str(node), json.dumps(known))
            node_batch.client.expire(key, _KEPT_SECONDS)

    result = find_culprits(queries, evaluate, keep)
    keep(result)
    return {query: _with_sample(node_batch, query, fault)
            for query, fault in known.items() if query in there}  # fmt: skip


def _copied(store: Store) -> dict[str, bytes]:
    if isinstance(store, NodeStore):
        return store.items_by_name()
    assert isinstance(store, Mapping), f"{type(store).__name__} does not list what it keeps"
    return dict(store)


def _with_sample(node_batch: "NodeBatch", query: int, fault: FaultReason) -> FaultReason:
    """Return the fault with the first records of the query's streams in this batch."""
    streams = frozenset(node_batch.table.table.queries[query].streams)
    for records in records_of(node_batch.input.envelopes):
        if not records.streams.isdisjoint(streams):
            return fault._replace(sample=sample_of_records(records, streams))
    return fault
