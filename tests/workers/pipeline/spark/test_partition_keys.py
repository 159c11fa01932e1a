"""Node keys fall on the partition of their node."""

import pytest

from workers.pipeline.spark.partition_keys import NodePartitionKeys, node_keys, partition_of


def test_four_nodes_have_the_keys_found_with_spark() -> None:
    """Spark's `pmod(hash(int), 4)` of these four is 0, 1, 2, 3.

    Checkpoints in which each node was a partition have these keys.
    """
    assert node_keys(4).keys_of(4) == [12, 6, 2, 0]


@pytest.mark.parametrize("partitions", [1, 2, 3, 8, 16])
def test_node_n_is_in_partition_n_modulo_partitions(partitions: int) -> None:
    """Nodes are spread over the partitions evenly."""
    keys = NodePartitionKeys(partitions)
    found = keys.keys_of(50)
    assert [partition_of(key, partitions) for key in found] == [n % partitions for n in range(50)]
    assert len(set(found)) == 50, "each node has a state of its own"
    assert [keys.node_of(key) for key in found] == list(range(50))


def test_keys_do_not_change_when_nodes_are_added() -> None:
    """The state of a node stays under its key; asked in any order the answer is the same."""
    grown, asked_late = NodePartitionKeys(3), NodePartitionKeys(3)
    before = grown.keys_of(4)
    assert asked_late.key_of(40) == grown.keys_of(41)[40]
    assert asked_late.keys_of(4) == before == grown.keys_of(4)


def test_a_worker_that_knows_no_key_yet_finds_the_node() -> None:
    """The stateful operator gets keys that another process has made."""
    assert NodePartitionKeys(2).node_of(NodePartitionKeys(2).key_of(17)) == 17
