"""Quarantine: a node finds the queries that end its process, and evaluates the batch without them.

What is found is kept in Redis under the batch's number immediately, so that a driver that is
restarted meanwhile does not search again; after the batch it is in the node's state, like every
fault.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, cast

import redis

from controlplane.wire import keys
from workers.pipeline.engine.evaluation.records import sample_of_records
from workers.pipeline.engine.failures.fault import FaultReason
from workers.pipeline.engine.failures.probe import find_culprits
from workers.pipeline.engine.store import MemoryStore, Store
from workers.pipeline.exchange.envelope import Envelope, NodeInput, records_of
from workers.pipeline.nodes.state_store import NodeStore
from workers.pipeline.reports.activity import count_step

_KEPT_SECONDS: Final = 86_400
_NOT_PROBED: Final = FaultReason("not evaluated in this probe")


def find_quarantined(
    client: "redis.Redis",
    cluster: str,
    batch: NodeInput,
    store: Store,
    streams: Mapping[int, Sequence[int]],
    evaluate: Callable[[Store, Mapping[int, FaultReason]], None],
) -> dict[int, FaultReason]:
    """Return the queries that end the process of a node in this batch, with the reason.

    `streams`: of the node's queries, by query. `evaluate` evaluates the batch with a store, without
    the queries that have a fault.
    """
    key = keys.quarantine_key(cluster, batch.header.batch)
    kept = cast("bytes | None", client.hget(key, str(batch.node)))
    known = {int(query): FaultReason(*row) for query, row in json.loads(kept or b"{}").items()}
    queries = streams.keys() - known.keys()
    # The child must not use the connection to the JVM, so all of the state is read before.
    state, before = _copied(store), dict(known)

    def evaluate_some(some: Collection[int]) -> None:
        others = dict.fromkeys(queries - set(some), _NOT_PROBED)
        evaluate(MemoryStore(state), before | others)

    def keep(result: Mapping[int, FaultReason]) -> None:
        # The agent sees that the batch makes progress.
        count_step(client, cluster)
        if result.keys() - known.keys():
            known.update(result)
            client.hset(key, str(batch.node), json.dumps(known))
            client.expire(key, _KEPT_SECONDS)

    keep(find_culprits(queries, evaluate_some, keep))
    return {query: _with_sample(fault, frozenset(streams[query]), batch.envelopes)
            for query, fault in known.items() if query in streams}  # fmt: skip


def _copied(store: Store) -> dict[str, bytes]:
    if isinstance(store, NodeStore):
        return store.items_by_name()
    assert isinstance(store, Mapping), f"{type(store).__name__} does not list what it keeps"
    return dict(store)


def _with_sample(
    fault: FaultReason, streams: frozenset[int], envelopes: Sequence[Envelope]
) -> FaultReason:
    """Return the fault with the first records of the query's streams in this batch."""
    for records in records_of(envelopes):
        if not records.streams.isdisjoint(streams):
            return fault._replace(sample=sample_of_records(records, streams))
    return fault
