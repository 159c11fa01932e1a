"""Drops: as many as asked, the same again, and windows only whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.wire.errors import InconsistentDelta
from controlplane.wire.routing.drop_rules import ALWAYS, DropRule
from workers.pipeline.engine.evaluation.drop_rules import (
    is_dropped,
    is_window_dropped,
    sample_hashes,
)

TIMES = np.sort(np.random.default_rng(3).integers(-50_000, 400_000, 5_000))
SAMPLE_HASH = sample_hashes(7, "1211-3", len(TIMES))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_a_random_drop_takes_its_share(share: float) -> None:
    """Within three standard deviations, and exactly at the ends."""
    dropped = is_dropped(DropRule.of(share, seed=5), SAMPLE_HASH, TIMES)
    bound = 3 * (share * (1 - share) / len(TIMES)) ** 0.5
    assert abs(dropped.mean() - share) <= bound


def test_luck_is_of_the_record_alone() -> None:
    """A part of a block has the luck it has in the whole; other blocks and seeds differ."""
    assert (sample_hashes(7, "1211-3", 10) == SAMPLE_HASH[:10]).all()
    for stream, position in ((8, "1211-3"), (7, "1212-3"), (7, "1211-4")):
        assert not (sample_hashes(stream, position, 10) == SAMPLE_HASH[:10]).any()
    first, second = (is_dropped(DropRule.of(0.5, seed), SAMPLE_HASH, TIMES) for seed in (1, 2))
    assert 0.4 < (first == second).mean() < 0.6


def test_hashes_of_a_block_do_not_change_with_a_release() -> None:
    """A replay after an upgrade drops the same records; nodes of two releases agree."""
    assert SAMPLE_HASH[:3].tolist() == [
        7038907695075860360, 8409782257285733687, 13585812185952786834,
    ]  # fmt: skip


def test_what_a_larger_share_keeps_a_smaller_one_keeps() -> None:
    """A change of the share changes as few records as it must."""
    small, large = (is_dropped(DropRule.of(share, 9), SAMPLE_HASH, TIMES) for share in (0.2, 0.6))
    assert not (small & ~large).any()


@settings(deadline=None)
@given(
    size=st.integers(1, 6), slide=st.integers(1, 6), batch=st.integers(1, 4), seed=st.integers(0, 9)
)
def test_windows_are_dropped_whole(size: int, slide: int, batch: int, seed: int) -> None:
    """A record goes exactly where all windows that contain it are dropped, by a plain search."""
    slide = min(size, slide)
    rule = DropRule(((ALWAYS, 0.3), (100_000, 0.7)), seed, size * 1_000, slide * 1_000, batch)
    times = TIMES[::40]
    found = is_dropped(rule, SAMPLE_HASH[::40], times)
    for ms, dropped in zip(times.tolist(), found.tolist(), strict=True):
        last = ms // rule.slide_ms * rule.slide_ms
        starts = np.arange(last, ms - rule.window_ms, -rule.slide_ms)
        assert dropped == is_window_dropped(rule, starts).all()


def test_a_share_begins_with_its_step() -> None:
    """Windows before the step are as they were."""
    before = DropRule(((0, 0.5),), 1, 1_000, 1_000)
    after = DropRule(((0, 0.5), (90_000, 1.0)), 1, 1_000, 1_000)
    starts = np.arange(0, 200_000, 1_000)
    old, new = (is_window_dropped(rule, starts) for rule in (before, after))
    assert (old[:90] == new[:90]).all()
    assert new[90:].all()
    assert not is_window_dropped(before, np.array([-1_000])).any()


@pytest.mark.parametrize(
    "rule",
    [
        DropRule(()),
        DropRule.of(1.5),
        DropRule(((5, 0.1), (5, 0.2))),
        DropRule(((0, 0.1),), window_ms=1_000, slide_ms=2_000),
        DropRule(((0, 0.1),), window_ms=1_000),
    ],
)
def test_a_drop_that_makes_no_sense_is_refused(rule: DropRule) -> None:
    with pytest.raises(InconsistentDelta):
        rule.check()
