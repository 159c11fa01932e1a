"""Node keys fall on the partition of their node."""

import pytest

from workers.pipeline.salt import node_keys, node_of_key, partition_of


def test_four_nodes_have_the_keys_found_with_spark() -> None:
    """Spark's `pmod(hash(int), 4)` of these four is 0, 1, 2, 3."""
    assert node_keys(4) == (12, 6, 2, 0)


@pytest.mark.parametrize("slots", [1, 3, 8, 16])
def test_key_of_each_node_hashes_to_it(slots: int) -> None:
    """A node is the partition of the same number."""
    assert [partition_of(key, slots) for key in node_keys(slots)] == list(range(slots))
    assert node_of_key(slots) == {key: node for node, key in enumerate(node_keys(slots))}
