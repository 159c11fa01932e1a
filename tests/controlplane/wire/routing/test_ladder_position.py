"""The choice of the position: least and feasible, and its way up and down."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controlplane.wire.routing.compiled_ladder import Floats, compiled_ladder
from controlplane.wire.routing.drop_rules import INPUT
from controlplane.wire.routing.ladder import Ladder
from controlplane.wire.routing.ladder_position import (
    START,
    SUSTAIN_MS,
    Needed,
    PositionState,
    least_position,
    next_state,
)
from tests.support.ladders import STREAMS, input_ladder, ladders

RATES = st.lists(st.floats(0, 1e4), min_size=STREAMS, max_size=STREAMS).map(np.array)
POSITIONS = st.floats(0, 5)
HOLD_MS = 10_000


def load_at(loads: Floats, position: float) -> Floats:
    """Return the load of each resource at a position, linear between rungs."""
    rungs = np.arange(loads.shape[1])
    return np.array([np.interp(position, rungs, row) for row in loads])


@given(ladders(), RATES, st.floats(0, 0.5))
def test_the_least_position_is_feasible_and_no_lower_one_is(
    given_ladder: Ladder, rates: Floats, waiting: float
) -> None:
    ladder = compiled_ladder(given_ladder)
    loads, limit = ladder.loads(rates[: len(ladder.streams)]), given_ladder.limit
    position = least_position(loads, np.full(len(loads), waiting), limit)
    assert 0 <= position <= ladder.rungs
    if position < ladder.rungs:
        assert (load_at(loads, position) + waiting <= limit + 1e-6).all()
    for lower in np.linspace(0, position, 23)[:-1]:
        assert position == lower or (load_at(loads, lower) + waiting > limit).any()


@given(st.lists(st.lists(st.floats(0, 3), min_size=4, max_size=4), min_size=1, max_size=3))
def test_loads_that_rise_from_rung_to_rung_are_no_obstacle(rows: list[list[float]]) -> None:
    """A rung may keep more of one edge for what it drops on another one."""
    loads = np.array(rows)
    position = least_position(loads, np.zeros(len(loads)), 1.0)
    feasible = [p for p in np.linspace(0, 3, 301) if (load_at(loads, p) <= 1).all()]
    assert not feasible or position <= feasible[0] + 1e-9
    assert position == 3 or (load_at(loads, position) <= 1 + 1e-6).all()


@given(ladders(), RATES, RATES)
def test_more_input_needs_no_lower_position(ladder: Ladder, rates: Floats, more: Floats) -> None:
    compiled = compiled_ladder(ladder)
    few, none = len(compiled.streams), np.zeros(len(compiled.resources))
    low = least_position(compiled.loads(rates[:few]), none, ladder.limit)
    high = least_position(compiled.loads((rates + more)[:few]), none, ladder.limit)
    assert low <= high + 1e-9


@given(ladders(), st.floats(0, 1))
def test_parts_are_interpolated_and_a_query_gets_no_more_than_its_input_edge(
    ladder: Ladder, fraction: float
) -> None:
    compiled = compiled_ladder(ladder)
    for edge in ladder.edges:
        for rung in range(compiled.rungs):
            low, high = compiled.part(edge, rung), compiled.part(edge, rung + 1)
            part = compiled.part(edge, rung + fraction)
            assert abs(part - (low + (high - low) * fraction)) < 1e-9
            reached = compiled.part((edge[0], INPUT), rung + fraction)
            share = compiled.share(edge, rung + fraction)
            assert 0 <= share <= 1
            assert abs((1.0 if edge[1] == INPUT else reached) * (1 - share) - part) < 1e-9


@given(ladders(), st.floats(0, 1))
def test_a_position_has_the_factor_that_leads_to_it(ladder: Ladder, fraction: float) -> None:
    compiled = compiled_ladder(ladder)
    position = fraction * compiled.rungs
    assert abs(compiled.position_of(compiled.factor_of(position)) - position) < 1e-6


def test_kept_parts_between_rungs_are_affine_in_the_inverse_of_the_factor() -> None:
    """With parts of 1 / factor on all rungs, every position keeps 1 / factor: no more fits."""
    compiled = compiled_ladder(input_ladder(7, 0.01, parts=(0.5, 0.25, 0.1)))
    for position in np.linspace(0, 3, 31).tolist():
        factor = compiled.factor_of(position)
        assert abs(compiled.part((7, INPUT), position) - 1 / factor) < 1e-9
    for factor in np.linspace(1, 10, 31).tolist():
        part = compiled.part((7, INPUT), compiled.position_of(factor))
        assert abs(part - 1 / factor) < 1e-9


def test_factors_beyond_the_rungs_have_the_nearest_position() -> None:
    compiled = compiled_ladder(input_ladder(7, 0.01, parts=(0.5, 0.25)))
    assert [compiled.position_of(factor) for factor in (0.0, 0.5, 1.0)] == [0.0] * 3
    assert [compiled.position_of(factor) for factor in (4.0, 1e9)] == [2.0] * 2
    early = compiled_ladder(input_ladder(7, 0.01, parts=(1.0, 0.5)))
    assert early.factor_of(0.0) < early.factor_of(1.0) == 1.0


def test_edges_without_a_part_keep_what_reaches_them() -> None:
    compiled = compiled_ladder(input_ladder(7, 0.01, parts=(0.5, 0.25)))
    assert compiled.part((7, 3), 1.0) == 0.5
    assert compiled.share((7, 3), 1.0) == 0.0
    assert compiled.part((8, INPUT), 2.0) == 1.0


def follow(needed: list[float], every_ms: int = 1_000, hold_ms: int = HOLD_MS) -> list[float]:
    """Return the positions for needed positions at regular times."""
    state, result = START, []
    for number, position in enumerate(needed, start=1):
        state = next_state(state, Needed(position, position), number * every_ms, hold_ms)
        result.append(state.position)
    return result


@given(st.lists(POSITIONS, max_size=60))
def test_a_position_is_never_below_what_is_needed(needed: list[float]) -> None:
    for position, wanted in zip(follow(needed), needed, strict=True):
        assert wanted <= position <= max([*needed, 0.0])


@given(st.lists(POSITIONS, min_size=1, max_size=60), POSITIONS)
def test_a_position_that_was_needed_for_a_while_is_held(needed: list[float], held: float) -> None:
    lasting = [held] * (SUSTAIN_MS // 1_000 + 1)
    positions = follow(lasting + [min(position, held) for position in needed])
    assert all(position >= held for position in positions[: len(lasting) + HOLD_MS // 1_000])


def test_the_position_follows_after_the_hold_time_and_does_not_oscillate() -> None:
    lasting = 2 * SUSTAIN_MS // 1_000
    positions = follow([0.0, *[2.0] * lasting, *[0.5, 0.2] * 15, *[0.0] * 25])
    assert positions[1 : lasting + 1] == [2.0] * lasting, "immediately"
    assert positions[lasting + 1 : lasting + 11] == [2.0] * 10
    changes = [low for high, low in pairwise(positions[lasting + 1 :]) if low != high]
    assert changes == [0.5, 0.0]
    short = [0.0, *[2.0] * (SUSTAIN_MS // 1_000 - 1), 0.0] * 3
    assert follow(short) == short, "too short to be held"


def test_a_load_that_falls_within_a_batch_is_held_once() -> None:
    positions = follow([*[2.0] * 6, 1.1, *[0.0] * 12])
    assert positions == [2.0] * 16 + [0.0] * 3
    slow = follow([*[2.0] * 4, 1.1, *[0.0] * 4], every_ms=5_000)
    assert slow == [2.0] * 6 + [0.0] * 3, "also if a batch takes longer than a load has to last"


def test_what_a_backlog_needs_is_not_held() -> None:
    state = START
    for number in range(1, 20):
        state = next_state(state, Needed(1.0, 3.0), number * 1_000, HOLD_MS)
        assert state.position == 3.0
    assert next_state(state, Needed(1.0, 1.0), 20_000, HOLD_MS).position == 1.0


def test_the_position_stays_while_the_rates_are_unknown() -> None:
    """After a restart, the first planning has no rates yet; a backlog counts."""
    state = PositionState(1.5, 1.5, 1_000, 1.5, active_ms=500)
    after = next_state(state, Needed(None, 0.0), 90_000, HOLD_MS)
    assert after == replace(state, factor=0.0)
    assert next_state(state, Needed(None, 2.0), 90_000, HOLD_MS).position == 2.0


def test_since_when_something_is_dropped() -> None:
    state = next_state(START, Needed(1.0, 1.0, 1.7), 5_000, 0)
    assert (state.active_ms, state.factor) == (5_000, 1.7)
    assert next_state(state, Needed(1.0, 1.0), 6_000, 0).active_ms == 5_000
    assert next_state(state, Needed(0.0, 0.0), 6_000, 0).active_ms == 0
