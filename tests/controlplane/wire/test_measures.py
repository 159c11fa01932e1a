"""Measures of nodes: what planners read is the sum of what the last batches wrote."""

import numpy as np
import pytest
import redis

from controlplane.wire import measures
from controlplane.wire.measures import packed, read_tasks, write


def table(*rows: tuple[int, ...]) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
    return np.array(rows, np.int64)


def test_rates_are_over_the_batches_that_are_kept(redis_client: "redis.Redis") -> None:
    """Records add up over time; state is what it was last; a replay adds nothing."""
    for batch, (records, size) in enumerate([(10, 300), (30, 500), (0, 400)], start=1):
        data = packed(2_000, table((7, 0, records, size), (7, 1, 1, 8)))
        for _ in range(2):
            write(redis_client, "c", 4, batch, data)
    first, second = read_tasks(redis_client, "c", [4])
    assert (first.query, first.task, first.node) == (7, 0, 4)
    assert first.evaluations_per_s == pytest.approx(40 / 6)
    assert first.state_bytes == 400
    assert (second.evaluations_per_s, second.state_bytes) == (0.5, 8)


@pytest.mark.parametrize("nodes", [(0, 1), (1, 0)])
def test_a_task_is_where_it_was_last(redis_client: "redis.Redis", nodes: tuple[int, int]) -> None:
    """Whichever node has the higher number; nodes without measures have none."""
    write(redis_client, "c", nodes[0], 1, packed(1_000, table((7, 0, 5, 100))))
    write(redis_client, "c", nodes[1], 2, packed(1_000, table((7, 0, 5, 120))))
    (found,) = read_tasks(redis_client, "c", [0, 1, 2])
    assert (found.node, found.state_bytes) == (nodes[1], 120)


def test_only_the_last_batches_are_kept(redis_client: "redis.Redis") -> None:
    for batch in range(1, measures.KEPT + 20):
        write(redis_client, "c", 0, batch, packed(1_000, table((7, 0, batch, 1))))
    (found,) = read_tasks(redis_client, "c", [0])
    assert found.evaluations_per_s == pytest.approx(np.mean(range(20, measures.KEPT + 20)))
