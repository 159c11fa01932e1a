"""The number of Spark partitions, and the grouping key of each node.

There are as many partitions as executor cores: more would cost a task each per micro-batch and gain
nothing, because nodes share partitions. Spark fixes the number when a checkpoint is begun. The keys
are chosen so that Spark sends node n to partition n % partitions.

Spark sends a row of key `k` to partition `pmod(murmur3(k), P)` before a stateful operator and
offers no way to choose the partition. So node n gets an integer that hashes to partition n % P:
of all such integers the (n // P)-th smallest. The key of a node depends on n and P alone, so
adding nodes changes no key, and nodes 0..P-1 have the keys that they had when every node was a
partition of its own.
"""

import os
import re
from functools import cache
from itertools import count
from typing import Final

_LOCAL: Final = re.compile(r"local(?:\[(\*|[0-9]+)(?:,[^\]]*)?\])?")
_SEED: Final = 42  # Spark's constant for hash partitioning
_MASK: Final = 0xFFFFFFFF


class NodePartitionKeys:
    """The keys of all nodes for one number of partitions, computed when first needed."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self._keys_of_partition: list[list[int]] = [[] for _ in range(partitions)]
        self._node_of: dict[int, int] = {}
        self._candidates = count()

    def key_of(self, node: int) -> int:
        """Return the grouping key of a node."""
        rank, partition = divmod(node, self.partitions)
        while len(self._keys_of_partition[partition]) <= rank:
            self._examine_next()
        return self._keys_of_partition[partition][rank]

    def keys_of(self, nodes: int) -> list[int]:
        """Return the keys of nodes 0..nodes-1."""
        return [self.key_of(node) for node in range(nodes)]

    def node_of(self, key: int) -> int:
        """Return the node that has a key (a non-negative integer)."""
        while key not in self._node_of:
            self._examine_next()
        return self._node_of[key]

    def _examine_next(self) -> None:
        """Assign the next integer to the next node of its partition."""
        key = next(self._candidates)
        keys = self._keys_of_partition[partition_of(key, self.partitions)]
        self._node_of[key] = partition_of(key, self.partitions) + self.partitions * len(keys)
        keys.append(key)


@cache
def node_keys(partitions: int) -> NodePartitionKeys:
    """Return the keys of all nodes for a number of partitions, shared by this process."""
    return NodePartitionKeys(partitions)


def partition_of(key: int, partitions: int) -> int:
    """Return the shuffle partition of an integer key (Spark's `pmod(hash(k), n)`)."""
    value = _murmur3_int(key)
    return (value - (1 << 32) if value & 0x80000000 else value) % partitions


def _murmur3_int(key: int) -> int:
    """Return MurmurHash3 x86_32 of one 32-bit integer."""
    mixed = _rotate(key * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    value = (_rotate(_SEED ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    value ^= 4  # length of the key in bytes
    value = (value ^ value >> 16) * 0x85EBCA6B & _MASK
    value = (value ^ value >> 13) * 0xC2B2AE35 & _MASK
    return value ^ value >> 16


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK


def partitions_for(master: str, wanted: int, nodes: int) -> int:
    """Return the number of partitions of a new checkpoint.

    `wanted`: what the cluster's settings ask for, 0 for on its own. That is the cores of a master
    `local[n]`; elsewhere the number of nodes, because an executor has one core and it is unknown
    how many executors there will be.
    """
    if wanted:
        return wanted
    return cores_of(master) or max(1, nodes)


def partition_warning(there: int | None, wanted: int) -> str:
    """Return a warning, "" if a checkpoint (None: a new one) has the wanted partitions."""
    if there is None or there == wanted:
        return ""
    return (
        f"the checkpoint has {there} Spark partitions and keeps them, {wanted} would fit "
        "its cores: stop the cluster and run `python -m workers.agent.repartition`"
    )


def with_retries(master: str, attempts: int) -> str:
    """Return a local master that runs a failed task up to so many times; others unchanged.

    A master `local[n]` runs each task once, whatever `spark.task.maxFailures` is; `local[n,m]`
    names its own number.
    """
    match = _LOCAL.fullmatch(master)
    if match is None or "," in master:
        return master
    return f"local[{match[1] or 1},{attempts}]"


def cores_of(master: str) -> int | None:
    """Return the cores of a local master (`local` has one), None for a master of executors."""
    match = _LOCAL.fullmatch(master)
    if match is None:
        return None
    cores = match[1] or "1"
    return os.cpu_count() or 1 if cores == "*" else int(cores)
