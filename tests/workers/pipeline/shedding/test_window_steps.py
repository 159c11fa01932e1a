"""Window rules of a ladder: whole windows in any sequence of changes, and bounded offsets."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.wire.routing.compiled_ladder import CompiledLadder, compiled_ladder
from controlplane.wire.routing.drop_rules import DropRule, Edge
from controlplane.wire.routing.ladder import KeptPart, Ladder, Rung, WindowDrop
from tests.support.ladders import MINUTE, input_ladder
from workers.pipeline.engine.evaluation.drop_rules import is_dropped, is_window_dropped
from workers.pipeline.shedding.window_steps import (
    LEVELS,
    MAX_STEPS,
    WINDOW_SEED,
    EventTimes,
    current_share,
    next_rules,
    rules_from_json,
    rules_to_json,
    share_of_windows,
)

EDGE: Edge = (1, 7)
NONE = np.zeros(0, np.uint64)


def windowed(window: WindowDrop, *more: WindowDrop) -> CompiledLadder:
    """Return a ladder of one rung that drops all on edges by windows."""
    windows = (window, *more)
    kept = tuple(KeptPart(item.stream, item.query, 0.0) for item in windows)
    return compiled_ladder(replace(input_ladder(9, 0.1), rungs=(Rung(2.0, kept),), windows=windows))


MINUTES = windowed(WindowDrop(*EDGE, MINUTE, MINUTE))
SLIDING = windowed(WindowDrop(*EDGE, 2 * MINUTE, MINUTE, batch=3))
OTHER = windowed(WindowDrop(*EDGE, 3 * MINUTE, 3 * MINUTE))
LADDERS: list[CompiledLadder | None] = [None, MINUTES, SLIDING, OTHER,
                                        compiled_ladder(input_ladder(1, 0.1))]  # fmt: skip


def dropped(rule: DropRule | None, shape: DropRule, newest: int) -> list[bool]:
    """Return which windows of a rule's length with read records a rule drops.

    Of those alone that a record which is no more than a minute late may be in.
    """
    first = (newest - MINUTE - shape.window_ms) // shape.slide_ms + 1
    starts = np.arange(first, newest // shape.slide_ms + 1) * shape.slide_ms
    if rule is None or replace(rule, steps=()) != replace(shape, steps=()):
        return [False] * len(starts)
    result: list[bool] = is_window_dropped(rule, starts).tolist()
    return result


@given(
    st.lists(
        st.tuples(
            st.sampled_from(LADDERS), st.floats(0, 1), st.integers(0, 3 * MINUTE), st.booleans()
        ),
        min_size=1, max_size=30,
    )
)  # fmt: skip
def test_no_window_has_a_part_of_its_records(
    steps: list[tuple[CompiledLadder | None, float, int, bool]],
) -> None:
    """Whatever changes when: the rules of all batches drop the same ones of the open windows."""
    rules: dict[Edge, DropRule] = {}
    newest = 0
    for ladder, position, passed, is_processed in steps:
        before = rules
        times = EventTimes({1: newest}, {EDGE: MINUTE}, is_processed)
        rules = next_rules(rules, ladder, position, times)
        assert rules_from_json(json.loads(json.dumps(rules_to_json(rules)))) == rules
        assert all(len(rule.steps) <= MAX_STEPS for rule in rules.values())
        old, new = before.get(EDGE), rules.get(EDGE)
        for shape in (rule for rule in (old, new) if rule is not None):
            assert dropped(old, shape, newest) == dropped(new, shape, newest)
        newest += passed
    for _ in range(3):
        newest += 20 * MINUTE
        rules = next_rules(rules, None, 0.0, EventTimes({1: newest}, {EDGE: MINUTE}))
    assert rules == {}, "old steps are forgotten"


def test_a_step_begins_with_windows_of_which_no_record_was_read() -> None:
    rules = next_rules({}, MINUTES, 0.5, EventTimes({1: 90_000}, {}))
    assert rules[EDGE] == DropRule(((2 * MINUTE, 0.5),), WINDOW_SEED, MINUTE, MINUTE)
    later = next_rules(rules, MINUTES, 0.93, EventTimes({1: 125_000}, {EDGE: 2 * MINUTE}))
    assert later[EDGE].steps == ((2 * MINUTE, 0.5), (3 * MINUTE, 0.95))
    assert next_rules(later, MINUTES, 0.92, EventTimes({1: 126_000}, {EDGE: MINUTE})) == later
    assert [current_share(later[EDGE], ms) for ms in (None, 119_999, 120_000, 180_000)] == [
        0, 0, 0.5, 0.95
    ]  # fmt: skip


def test_other_windows_are_dropped_after_the_rule_before_is_over() -> None:
    rules = next_rules({}, MINUTES, 1.0, EventTimes({1: 0}, {}))
    ending = next_rules(rules, OTHER, 1.0, EventTimes({1: 70_000}, {}))
    assert ending[EDGE].steps == ((MINUTE, 1.0), (2 * MINUTE, 0.0))
    following = next_rules(ending, OTHER, 1.0, EventTimes({1: 300_000}, {}))
    assert following[EDGE].steps == ((6 * MINUTE, 1.0),)
    assert following[EDGE].window_ms == 3 * MINUTE


def test_steps_are_bounded_while_records_wait() -> None:
    rules: dict[Edge, DropRule] = {}
    for step in range(3 * MAX_STEPS):
        times = EventTimes({1: step * MINUTE}, {}, is_processed=False)
        rules = next_rules(rules, MINUTES, (step % 2) / 2 + 0.25, times)
    assert len(rules[EDGE].steps) == MAX_STEPS


def test_equal_rules_are_stored_once() -> None:
    more = [WindowDrop(1, query, MINUTE, MINUTE) for query in range(100, 600)]
    rules = next_rules({}, windowed(*more), 0.5, EventTimes({1: 5}, {}))
    assert len(rules) == 500
    text = json.dumps(rules_to_json(rules), separators=(",", ":"))
    assert len(text) < 500 * 10
    assert rules_from_json(json.loads(text)) == rules


@pytest.mark.parametrize(
    ("window_ms", "slide_ms", "batch"),
    [(10, 10, 1), (10, 10, 4), (20, 10, 1), (20, 10, 3), (35, 10, 2), (30, 10, 5)],
)
@pytest.mark.parametrize("share", [0.0, 0.2, 0.7, 1.0])
def test_dropped_windows_drop_a_share_of_the_records(
    window_ms: int, slide_ms: int, batch: int, share: float
) -> None:
    window = WindowDrop(*EDGE, window_ms, slide_ms, batch)
    rule = DropRule(((0, share_of_windows(window, share)),), 3, window_ms, slide_ms, batch)
    times = np.arange(1_000, 2_000_000, 7)
    # A record is in one window less at most places if the slide is not a divisor of the window.
    slack = 0.03 if window_ms % slide_ms == 0 else 0.06
    assert is_dropped(rule, NONE, times).mean() == pytest.approx(share, abs=slack)


def test_shares_are_rounded_up_to_levels() -> None:
    ladder = windowed(WindowDrop(*EDGE, MINUTE, MINUTE))
    for position in (0.01, 0.05, 0.051, 0.5, 0.999):
        (step,) = next_rules({}, ladder, position, EventTimes({}, {}))[EDGE].steps
        assert position - 1e-9 <= step[1] < position + 1 / LEVELS


def test_a_ladder_of_records_has_no_window_rules() -> None:
    records = Ladder((Rung(2.0, (KeptPart(*EDGE, 0.5),)),), ())
    assert next_rules({}, compiled_ladder(records), 1.0, EventTimes({1: 5}, {})) == {}
