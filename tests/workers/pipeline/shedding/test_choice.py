"""The state of a ladder in the offset, and how loads, backlogs and other ladders change it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.wire.routing.cluster_actions import SetLadder
from controlplane.wire.routing.compiled_ladder import compiled_ladder
from controlplane.wire.routing.drop_rules import INPUT, DropRule
from controlplane.wire.routing.ladder import KeptPart, Ladder, Rung, WindowDrop
from controlplane.wire.routing.ladder_position import PositionState
from tests.support.ladders import MINUTE, input_ladder, ladders
from tests.support.tables import compiled
from workers.pipeline.routing.key_grouping import BacklogLoad
from workers.pipeline.shedding.arrivals import AppendedCounts, Rates
from workers.pipeline.shedding.choice import (
    BatchMeasures,
    LadderState,
    kept_of_streams,
    needed_positions,
    next_ladder_state,
)
from workers.pipeline.shedding.window_steps import WINDOW_SEED, EventTimes
from workers.pipeline.sources.cut import Cut, LogCut
from workers.pipeline.split_nodes.offset import BatchInputs, Offset

# 100 records/s of stream 1 are all of node 0's time; kept parts 1/2, 1/4, 0.
LADDER = compiled_ladder(input_ladder(1, 0.01, hold_ms=10_000, drain_ms=5_000))
RULE = DropRule(((60_000, 0.5), (120_000, 0.25)), WINDOW_SEED, 60_000, 30_000, 2)
STATE = LadderState(
    PositionState(1.5, 1.25, 9_000, 1.75, active_ms=3_000, factor=2.5),
    {(1, INPUT): RULE, (1, 7): RULE, (2, 7): replace(RULE, steps=((0, 1.0),))},
    {1: 130_000, 2: -5},
)


def measured(
    per_s: float | None, unread: float = 0.0, waiting: int = 0, now_ms: int = 50_000,
    idle_ms: int = 1_000,
) -> BatchMeasures:  # fmt: skip
    """Return what a planning measures of stream 1, and of node 0 with 100 records/s."""
    rates = None if per_s is None else Rates(np.array([per_s]), 1_000)
    appended = AppendedCounts(np.zeros(1), np.array([unread]))
    nodes = {0: BacklogLoad(waiting, 1.0)}
    times = EventTimes({}, {})
    return BatchMeasures(appended, rates, nodes, {0: 100.0}, times, now_ms, idle_ms)


def test_the_state_comes_back_from_the_offset() -> None:
    begin = Offset(batch=4, position="100-0", total=50, version=3, clock_ms=900)
    inputs = BatchInputs(Cut(LogCut("101-0", 60)), 3, 1_000, ladder=STATE.to_json())
    offset = Offset.from_json(json.loads(json.dumps(begin.next(inputs).to_json())))
    assert offset == begin.next(inputs)
    assert offset.ladder is not None
    assert LadderState.from_json(offset.ladder) == STATE


@given(ladders(), st.lists(st.tuples(st.floats(0, 1e4), st.floats(0, 1e3)), max_size=9))
def test_a_replay_chooses_alike_after_any_number_of_steps(
    given_ladder: Ladder, steps: list[tuple[float, float]]
) -> None:
    """From the JSON of the offset, compiled again from the JSON of the table."""
    ladder = compiled_ladder(given_ladder)
    count = len(ladder.streams)
    state: LadderState | None = None
    for number, (per_s, unread) in enumerate(steps):
        inputs = BatchMeasures(
            AppendedCounts(np.zeros(count), np.full(count, unread)),
            Rates(np.full(count, per_s), 1_000), {}, {},
            EventTimes(dict.fromkeys(range(1, 4), number * MINUTE), {}), 1_000 * number,
        )  # fmt: skip
        other = compiled_ladder(Ladder.from_json(json.loads(json.dumps(given_ladder.to_json()))))
        stored = state and LadderState.from_json(json.loads(json.dumps(state.to_json())))
        state = next_ladder_state(state, ladder, ladder, inputs)
        assert next_ladder_state(stored, other, other, inputs) == state


@pytest.mark.parametrize(
    ("per_s", "position"), [(90, 0), (150, 2 / 3), (200, 1), (400, 2), (800, 2.5), (1e9, 3)]
)
def test_arrivals_need_the_rung_of_their_factor(per_s: float, position: float) -> None:
    needed = needed_positions(LADDER, measured(per_s))
    assert needed.by_rates == pytest.approx(position, abs=1e-6)
    assert needed.with_backlogs == pytest.approx(position, abs=1e-6)
    assert needed.factor == pytest.approx(per_s / 100)


def test_a_backlog_counts_as_a_rate_that_works_it_off() -> None:
    """Less than what arrives within one and a half batches is not a backlog."""
    assert needed_positions(LADDER, measured(100, unread=150)).with_backlogs == 0
    needed = needed_positions(LADDER, measured(100, unread=150 + 500))
    assert (needed.by_rates, needed.factor) == (0, 1)
    assert needed.with_backlogs == pytest.approx(1)
    waiting = needed_positions(LADDER, measured(80, waiting=50 + 250)).with_backlogs
    assert waiting == pytest.approx(2 * (1 - 0.5 / 0.8)), "half the node's time is left for 80/s"
    assert needed_positions(LADDER, measured(80, waiting=600)).with_backlogs == 3, "all of it"
    assert needed_positions(LADDER, measured(None, unread=1_000)).by_rates is None
    assert needed_positions(LADDER, measured(None, unread=1_000)).with_backlogs == pytest.approx(1)


def test_another_ladder_goes_on_at_the_same_input_factor() -> None:
    other = compiled_ladder(input_ladder(1, 0.01, parts=(0.8, 0.5, 0.25), hold_ms=10_000))
    state = LadderState(PositionState(1.0, 1.0, 49_000, 1.0))
    after = next_ladder_state(state, LADDER, other, measured(50))
    assert after is not None
    assert after.position.position == pytest.approx(2.0)
    same = next_ladder_state(state, LADDER, LADDER, measured(50))
    assert same is not None
    assert same.position.position == 1.0


def test_the_hold_time_passes_without_batches_too() -> None:
    state = LadderState(PositionState(1.0, 1.0, 49_000, 1.0))
    after = next_ladder_state(state, LADDER, LADDER, measured(50, idle_ms=10_001))
    assert after is not None
    assert after.position.position == 0


def test_a_disarmed_ladder_ends_with_its_windows() -> None:
    state = LadderState(PositionState(1.0, 1.0), {(1, 7): RULE}, {1: 130_000})
    times = EventTimes({1: 130_000}, {})
    ending = next_ladder_state(state, LADDER, None, replace(measured(50), times=times))
    assert ending is not None
    assert (ending.position.position, ending.windows[1, 7].steps[-1]) == (0, (180_000, 0.0))
    times = EventTimes({1: 900_000}, {})
    assert next_ladder_state(ending, None, None, replace(measured(50), times=times)) is None
    assert next_ladder_state(LadderState(), LADDER, None, measured(50)) is None


def test_what_input_edges_keep() -> None:
    window = WindowDrop(2, INPUT, 60_000, 60_000)
    rung = Rung(2.0, (KeptPart(1, INPUT, 0.5), KeptPart(2, INPUT, 0.0), KeptPart(3, 7, 0.0)))
    ladder = replace(LADDER.ladder, rungs=(rung,), windows=(window,))
    table = compiled(SetLadder(ladder))
    rule = DropRule(((60_000, 0.75),), WINDOW_SEED, 60_000, 60_000)
    state = LadderState(PositionState(0.5), {(2, INPUT): rule}, {2: 59_999})
    assert kept_of_streams(state, table) == {1: 0.75}
    assert kept_of_streams(replace(state, newest={2: 60_000}), table) == {1: 0.75, 2: 0.25}
    assert kept_of_streams(LadderState(), table) == kept_of_streams(None, table) == {}
