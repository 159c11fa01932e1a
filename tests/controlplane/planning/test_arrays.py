"""A snapshot as arrays says what the snapshot says; unknown nodes and streams are errors."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.planning.arrays import QueryArrays, positions, positions_if_known, rates_of
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
def test_queries_are_those_of_the_snapshot_after_moves(seed: int) -> None:
    """Nodes and streams are not in the order of their ids; moves of split queries are left out."""
    snapshot = drawn(seed)
    snapshot.nodes.reverse()
    snapshot.streams.reverse()
    moves = gathered(snapshot)
    targets = {move["query"]: move["to"] for move in moves}
    found = QueryArrays.of(snapshot).after(snapshot, moves)
    nodes = [node.index for node in snapshot.nodes]
    streams = [stream for stream, _ in snapshot.streams]
    assert len(found.ids) == len(snapshot.queries)
    for at, (query, _, node, read) in enumerate(snapshot.queries):
        assert found.ids[at] == query
        assert nodes[found.nodes[at]] == targets.get(query, node)
        row = found.streams[found.indptr[at] : found.indptr[at + 1]]
        assert [streams[one] for one in row] == read


def test_readers_are_counted_per_node_and_stream() -> None:
    snapshot = drawn(1)
    found = QueryArrays.of(snapshot)
    counts = found.readers(len(snapshot.nodes), len(rates_of(snapshot)))
    for _, _, node, read in snapshot.queries:
        counts[node, read] -= 1
    assert not counts.any()


def test_a_cluster_without_queries_has_empty_arrays() -> None:
    found = QueryArrays.of(replace(drawn(0), queries=[], streams=[]))
    assert found.readers(4, 0).shape == (4, 0)
    assert found.after(drawn(0), gathered(drawn(0))).nodes.tolist() == []
