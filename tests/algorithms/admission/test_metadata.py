"""Meta-data of streams: what is accepted, and defaults from other streams."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.admission.metadata import StreamMetadata, Transition, averages
from algorithms.errors import BadProblem

KNOWN = st.dictionaries(
    st.sampled_from(["rate", "average", "period_s", "burst_s", "pause_s"]), st.floats(0, 1e6)
)


def test_there_are_ten_characteristics() -> None:
    full = StreamMetadata(3, 4, 1, 8, 9, 60, 20, Transition.JUMP, 5, 7)
    assert len(full.to_json()) == 10
    assert StreamMetadata.from_json(full.to_json()) == full


@given(KNOWN)
def test_json_round_trip(row: dict[str, float]) -> None:
    assert StreamMetadata.from_json(row).to_json() == row


@pytest.mark.parametrize(
    ("row", "where"),
    [
        ({"rate": -1}, "meta.rate"),
        ({"rate": "fast"}, "meta.rate"),
        ({"rate": True}, "meta.rate"),
        ({"peak": float("inf")}, "meta.peak"),
        ({"minimum": 5, "maximum": 3}, "meta.minimum"),
        ({"average": 5, "peak": 3}, "meta.average"),
        ({"period_s": 10, "high_s": 20}, "meta.high_s"),
        ({"transition": "leap"}, "meta.transition"),
        ({"colour": 1}, "meta.colour"),
        ([], "meta"),
    ],
)
def test_bad_meta_data_are_named(row: Any, where: str) -> None:
    with pytest.raises(BadProblem) as caught:
        StreamMetadata.from_json(row)
    assert caught.value.where == where


def test_unknown_characteristics_are_averages_of_the_others() -> None:
    usual = averages([StreamMetadata(average=2, peak=6), StreamMetadata(average=4)])
    assert usual == StreamMetadata(average=3, peak=6)
    assert StreamMetadata(peak=5).with_defaults(usual) == StreamMetadata(average=3, peak=5)


def test_a_default_that_contradicts_is_left_out() -> None:
    usual = StreamMetadata(average=30, peak=60)
    assert StreamMetadata(maximum=5).with_defaults(usual) == StreamMetadata(maximum=5, peak=60)
