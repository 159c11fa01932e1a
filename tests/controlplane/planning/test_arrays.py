"""The load model has what the snapshot has; unknown nodes and streams are errors."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.planning.arrays import positions, positions_if_known
from controlplane.planning.load_model import LoadModel
from controlplane.plans.plan import TaskMove, task_moves
from tests.controlplane.planning.drawn import drawn, gathered


@given(st.lists(st.integers(-50, 50), unique=True), st.lists(st.integers(-50, 50)))
def test_positions_are_those_of_the_list(known: list[int], wanted: list[int]) -> None:
    found, there = positions_if_known(np.array(known, np.int64), np.array(wanted, np.int64))
    assert there.tolist() == [value in known for value in wanted]
    for value, at in zip(wanted, found.tolist(), strict=True):
        assert value not in known or known.index(value) == at


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(KeyError) as caught:
        positions(np.array([3, 1], np.int64), np.array([1, 9], np.int64))
    assert caught.value.args == (9,)


@pytest.mark.parametrize("seed", range(4))
def test_loads_are_those_of_the_snapshot_after_moves(seed: int) -> None:
    """Nodes and streams are not in the order of their ids; unknown queries are left out."""
    snapshot = drawn(seed)
    snapshot.nodes.reverse()
    snapshot.streams.reverse()
    plan = gathered(snapshot)
    targets = {(move.query, move.task): move.target for move in task_moves(plan)}
    model = LoadModel.of(snapshot).after([*plan, TaskMove(999, 0, 0, 1, 0)])
    nodes, streams = model.indices.tolist(), model.streams.tolist()
    assert nodes == [node.index for node in snapshot.nodes]
    for unit, (query, _, node, read) in enumerate(snapshot.queries):
        assert model.ids[unit] == query
        assert nodes[model.nodes[unit]] == targets.get((query, 0), node)
        row = model.entries[model.indptr[unit] : model.indptr[unit + 1]]
        assert [streams[one] for one in row] == read
        assert model.state[unit] == snapshot.state[query]
    for (query, task), unit in model.tasks.items():
        work = snapshot.split[0].work
        assert model.shares[unit] == work[task] / sum(work)
        ranges = snapshot.split[0].ranges
        present = next(node for node, first, stop in ranges if first <= task < stop)
        assert nodes[model.nodes[unit]] == targets.get((query, task), present)


def test_readers_are_counted_per_node_and_stream() -> None:
    snapshot = drawn(1)
    counts = LoadModel.of(snapshot).readers.copy()
    for _, _, node, read in snapshot.queries:
        counts[node, read] -= 1
    assert not counts.any()


def test_a_cluster_without_queries_has_empty_arrays() -> None:
    empty = replace(drawn(0), queries=[], streams=[], split=[])
    model = LoadModel.of(empty)
    assert model.readers.shape == (4, 0)
    assert model.after(gathered(drawn(0))).nodes.tolist() == []
    assert model.loads.tolist() == [0.0] * 4
