"""Gains and measures as texts with their units."""

from dataclasses import replace

import pytest

from controlplane.planning.adapters import all_measures
from controlplane.planning.measures import Better
from controlplane.policies.gains import Gain, gain_between


def test_a_gain_is_a_text_with_title_and_values() -> None:
    assert str(Gain("imbalance", 0.5, 0.2, 0.1)) == "imbalance from 20 % to 10 %"
    assert str(Gain("unknown", 0.5, 0.21234, 0.1)) == "unknown from 0.212 to 0.1"


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [(2.0, 1.0, 0.5), (1.0, 2.0, -1.0), (0.0, 1.0, -1.0), (1e-6, 0.0, 0.0), (2e-6, 0.0, 1.0)],
)
def test_a_gain_is_a_share_of_what_was_before(before: float, after: float, share: float) -> None:
    gain = gain_between("placement", {"imbalance": before}, {"imbalance": after}, "imbalance")
    assert (gain.share, gain.before, gain.after) == (share, before, after)
    unknown = gain_between("placement", {"x": before}, {"x": after}, "x")
    assert unknown == replace(gain, measure="x")


def test_more_of_a_measure_that_is_better_higher_is_a_gain() -> None:
    highest = [name for name, row in all_measures().items() if row.better == Better.HIGHER]
    assert highest
    for name in highest:
        assert gain_between("shedding", {name: 0.5}, {name: 0.75}, name).share == 0.5
