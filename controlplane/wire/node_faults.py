"""Faults of nodes that scenarios of demo clusters inject: slow nodes, and nodes without a worker.

The driver reads them from Redis when it plans a batch and stores them in the offset, so that a
replayed batch has the same faults. Each has an end, after which it has no effect.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import redis

from controlplane.wire.foreign.entries import EntryLocation, hash_items, whole
from controlplane.wire.keys import faults_key

# The delay of a lost node: it processes no records, which wait in its backlog.
LOST: Final = -1
# A fault is readable for so long after its end at most.
_SPARE_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class NodeFault:
    """A fault of a node until `until_ms` (since the epoch).

    `delay_us`: microseconds that the node needs for each record besides, or `LOST`.
    """

    node: int
    delay_us: int
    until_ms: int


def inject(client: "redis.Redis", cluster: str, fault: NodeFault) -> None:
    """Store a fault; it replaces the one that the node has."""
    key = faults_key(cluster)
    client.hset(key, str(fault.node), f"{fault.delay_us} {fault.until_ms}")
    latest = max((row.until_ms for row in _stored(client, cluster)), default=fault.until_ms)
    client.pexpireat(key, latest + _SPARE_MS)


def remove(client: "redis.Redis", cluster: str, node: int) -> None:
    """Remove the fault of a node, if it has one."""
    client.hdel(faults_key(cluster), str(node))


def active(client: "redis.Redis", cluster: str, now_ms: int) -> Mapping[int, int]:
    """Return the delay of each node with a fault, in microseconds per record, or `LOST`."""
    return {
        fault.node: fault.delay_us
        for fault in _stored(client, cluster)
        if fault.until_ms > now_ms
    }  # fmt: skip


def _stored(client: "redis.Redis", cluster: str) -> list[NodeFault]:
    def read(node: str, row: bytes) -> NodeFault:
        delay_us, until_ms = map(whole, row.split())
        return NodeFault(whole(node), delay_us, until_ms)

    return hash_items(client, cluster, EntryLocation.FAULTS, faults_key(cluster), read)
