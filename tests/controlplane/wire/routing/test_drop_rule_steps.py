"""A drop changes and forgets without any window being dropped in part: judged by the engine."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controlplane.wire.routing.drop_rules import (
    ALWAYS,
    DropRule,
    add_step,
    first_group,
    needed_since,
    remove_old_steps,
)
from workers.pipeline.engine.evaluation.drop_rules import is_dropped, is_window_dropped

MINUTE = 60_000
SHARES = st.sampled_from([0.0, 0.25, 0.5, 1.0])


def minutes(*steps: tuple[int, float]) -> DropRule:
    return DropRule(steps, 7, MINUTE, MINUTE)


@st.composite
def drop_rules(draw: st.DrawFn) -> DropRule:
    slide = draw(st.integers(1, 5))
    window = draw(st.integers(slide, 12))
    empty = DropRule(
        ((ALWAYS, 1.0),), draw(st.integers(0, 9)), window, slide, draw(st.integers(1, 3))
    )
    times = sorted(draw(st.sets(st.integers(0, 60), min_size=1, max_size=5)))
    steps = [(first_group(empty, time), draw(SHARES)) for time in times]
    unique = tuple(sorted(dict(steps).items()))
    return replace(empty, steps=unique)


def dropped(rule: DropRule | None, starts: np.ndarray) -> list[bool]:
    """Return which windows the engine drops."""
    return [] if rule is None else is_window_dropped(rule, starts).tolist()


def test_a_step_begins_behind_what_was_seen() -> None:
    assert first_group(minutes(), 59_999) == MINUTE
    assert first_group(minutes(), 60_000) == 2 * MINUTE
    assert first_group(replace(minutes(), batch=3), 0) == 3 * MINUTE
    assert first_group(minutes(), None) == ALWAYS


def test_a_change_that_has_not_begun_is_replaced() -> None:
    """No record has met it: the list does not grow while nothing comes."""
    rule = minutes((0, 0.5), (MINUTE, 0.7))
    assert add_step(rule, MINUTE, 0.2) == minutes((0, 0.5), (MINUTE, 0.2))
    assert add_step(rule, 0, 0.0) is None
    assert add_step(rule, 2 * MINUTE, 0.7) == rule, "the same share is not a change"


def test_a_lifted_drop_is_needed_until_its_last_window_is_over() -> None:
    rule = minutes((0, 0.5), (MINUTE, 0.0))
    assert needed_since(rule, 2 * MINUTE - 1) is None
    assert needed_since(rule, 2 * MINUTE) == MINUTE
    assert remove_old_steps(rule, MINUTE) is None


@given(rule=drop_rules(), seen=st.integers(0, 80), share=SHARES)
def test_a_change_leaves_every_window_alone_that_has_a_record(
    rule: DropRule, seen: int, share: float
) -> None:
    """Whatever the windows: those with a record up to `seen` are decided as before."""
    starts = np.arange(-30, 200) * rule.slide_ms
    changed = add_step(rule, first_group(rule, seen), share)
    before, after = dropped(rule, starts), dropped(changed, starts) or [False] * len(starts)
    begun = starts <= seen
    assert [x for x, old in zip(after, begun, strict=True) if old] == [
        x for x, old in zip(before, begun, strict=True) if old
    ]
    later = starts >= first_group(rule, seen)
    if share in (0.0, 1.0):
        wanted = {bool(share)}
        assert {x for x, new in zip(after, later, strict=True) if new} == wanted


@given(rule=drop_rules(), oldest=st.integers(0, 120))
def test_what_is_forgotten_no_record_can_ask_for(rule: DropRule, oldest: int) -> None:
    """Records from `oldest` on, and their windows, meet the same fate with and without it."""
    since = needed_since(rule, oldest)
    left = rule if since is None else remove_old_steps(rule, since)
    ts = np.arange(oldest, oldest + 200)
    luck = np.zeros(len(ts), np.uint64)
    gone = is_dropped(rule, luck, ts).tolist()
    assert (is_dropped(left, luck, ts).tolist() if left else [False] * len(ts)) == gone
    first = (oldest - rule.window_ms) // rule.slide_ms + 1
    starts = np.arange(first, first + 100) * rule.slide_ms
    assert (dropped(left, starts) or [False] * len(starts)) == dropped(rule, starts)


@given(rule=drop_rules())
def test_in_the_end_one_step_is_left(rule: DropRule) -> None:
    """The list is bounded: once time has passed, all but the last step go."""
    late = rule.steps[-1][0] + (rule.batch - 1) * rule.slide_ms + rule.window_ms
    since = needed_since(rule, late)
    left = rule if since is None else remove_old_steps(rule, since)
    assert (left.steps if left else ()) == (rule.steps[-1:] if rule.steps[-1][1] else ())
