"""The schemes that can be named are those that the pipeline has."""

import pytest

from controlplane.wire.routing.key_groupings import HASH, SCHEMES, scheme_text, splits_keys
from workers.pipeline.routing import key_grouping as pipeline


def test_what_can_be_named_can_be_run() -> None:
    assert set(SCHEMES) == set(pipeline._SCHEMES)


@pytest.mark.parametrize("name", SCHEMES)
def test_a_route_says_it_in_the_words_of_the_pipeline(name: str) -> None:
    """Also whether a key may have several tasks, which decides who can have the scheme."""
    found = pipeline.scheme_of(scheme_text(name))
    assert found.by_key == SCHEMES[name].by_key
    assert splits_keys(name) is not SCHEMES[name].by_key


def test_the_hash_needs_no_word() -> None:
    """A table full of plain queries stays small, and asks no node for its load."""
    assert scheme_text("") == scheme_text(HASH) == ""
    assert not splits_keys("")
