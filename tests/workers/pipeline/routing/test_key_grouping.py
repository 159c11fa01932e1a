"""Key groupings of routes: those of the catalog, by the text that the routing table carries."""

import numpy as np
import pytest

from algorithms.errors import BadParameters, UnknownGrouping
from algorithms.partitioning.catalog import GROUPINGS, grouping_text
from controlplane.wire.query import Window
from workers.pipeline.routing.key_grouping import PLAIN, key_grouping_of, tasks_by_key

HASHES = np.random.default_rng(5).integers(0, 2**63, 3_000).astype(np.uint64)


def test_plain_key_grouping_is_the_hash_modulo_the_tasks() -> None:
    """Clusters in operation have state by it."""
    assert (tasks_by_key(HASHES, 3) == (HASHES % np.uint64(3)).astype(np.int64)).all()
    for text in ("", '{"grouping": "key"}'):
        assert key_grouping_of(text) is PLAIN
    assert PLAIN.by_key


@pytest.mark.parametrize("name", [name for name in GROUPINGS if name != "key"])
def test_every_other_grouping_is_evaluated_at_the_split_node(name: str) -> None:
    grouping = key_grouping_of(grouping_text(name), Window(9_000, 6_000))
    assert not grouping.by_key
    assert grouping.needs_times == GROUPINGS[name].needs_times
    assert grouping.load().name == name
    assert grouping is key_grouping_of(grouping_text(name), Window(9_000, 6_000))


def test_key_grouping_by_capacities_is_evaluated_at_the_split_node() -> None:
    """Nodes compute the plain hash only."""
    weighted = key_grouping_of(grouping_text("key", {"weighted": True}))
    assert (weighted.by_key, weighted.is_stateful) == (False, False)


def test_texts_without_a_known_grouping_are_rejected() -> None:
    with pytest.raises(UnknownGrouping):
        key_grouping_of('{"grouping": "best"}')
    for text in ("[]", "{", '{"grouping": 5}'):
        with pytest.raises(BadParameters):
            key_grouping_of(text)
