"""Key groupings: by the key alone, or by load; two choices share a hot key between two tasks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.partitioning.two_choices import choices_of, less_loaded
from workers.pipeline.routing.key_grouping import NodeLoad, key_grouping_of

TWO = key_grouping_of('{"kind": "two_choices"}')
HASHES = np.random.default_rng(5).integers(0, 2**63, 3_000).astype(np.uint64)


def test_the_hash_alone_decides_unless_a_route_says_otherwise() -> None:
    key_grouping = key_grouping_of("")
    assert key_grouping.by_key
    tasks = key_grouping.tasks_of(HASHES, (0, 0, 1), {0: NodeLoad(10_000, 1.0)})
    assert (tasks == (HASHES % np.uint64(3)).astype(np.int64)).all()


def test_a_key_grouping_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(LookupError, match="no key grouping best; there are hash, two_choices"):
        key_grouping_of('{"kind": "best"}')


@given(workers=st.integers(1, 50))
def test_both_choices_are_workers_and_differ(workers: int) -> None:
    first, second = choices_of(HASHES, workers)
    for choice in (first, second):
        assert ((choice >= 0) & (choice < workers)).all()
    assert (first != second).all() or workers == 1


def test_the_less_loaded_is_what_a_plain_loop_finds() -> None:
    first, second = choices_of(HASHES, 7)
    load = [3.0, 0.0, 50.0, 0.0, 1.0, 0.0, 0.0]
    expected, mine = [], list(load)
    for a, b in zip(first.tolist(), second.tolist(), strict=True):
        worker = a if mine[a] <= mine[b] else b
        mine[worker] += 1
        expected.append(worker)
    assert less_loaded(first, second, np.array(load)).tolist() == expected


def test_a_hot_key_is_shared_by_two() -> None:
    """Nine of ten records have one key: hashing puts them on one task."""
    hot = np.where(np.arange(3_000) % 10 == 0, HASHES, HASHES[0])
    owners = tuple(range(8))
    by_hash = np.bincount(key_grouping_of("").tasks_of(hot, owners, {}), minlength=8)
    shared = np.bincount(TWO.tasks_of(hot, owners, {}), minlength=8)
    assert by_hash.max() > 2_600
    assert shared.max() < 1_500


def test_records_avoid_a_node_where_many_wait() -> None:
    """As far as the key's other choice allows."""
    owners = (0, 0, 1, 1)
    busy = {1: NodeLoad(waiting=100_000, utilisation=1.0)}
    plain, avoided = (np.bincount(TWO.tasks_of(HASHES, owners, signals), minlength=4)
                      for signals in ({}, busy))  # fmt: skip
    assert avoided[2:].sum() < 0.5 * plain[2:].sum()
    first, second = choices_of(HASHES, 4)
    only_there = ((first >= 2) & (second >= 2)).sum()
    assert avoided[2:].sum() == only_there
