"""The key groupings that can be named are those that the pipeline has."""

import pytest

from controlplane.wire.routing.route import (
    HASH,
    KEY_GROUPINGS,
    key_grouping_text,
    splits_keys,
)
from workers.pipeline.routing import key_grouping as pipeline


def test_what_can_be_named_can_be_run() -> None:
    assert set(KEY_GROUPINGS) == set(pipeline._KEY_GROUPINGS)


@pytest.mark.parametrize("name", KEY_GROUPINGS)
def test_a_route_says_it_in_the_words_of_the_pipeline(name: str) -> None:
    """Also whether a key may have several tasks, which decides who can have the key grouping."""
    found = pipeline.key_grouping_of(key_grouping_text(name))
    assert found.by_key == KEY_GROUPINGS[name].by_key
    assert splits_keys(name) is not KEY_GROUPINGS[name].by_key


def test_the_hash_needs_no_word() -> None:
    """A table full of plain queries stays small, and asks no node for its load."""
    assert key_grouping_text("") == key_grouping_text(HASH) == ""
    assert not splits_keys("")
