"""Provisional ladders: the factor of assumed costs follows from the time of batches."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controlplane.wire.routing.compiled_ladder import compiled_ladder
from controlplane.wire.routing.ladder import Cost, ResourceKind
from tests.support.ladders import input_ladder
from workers.pipeline.routing.key_grouping import BacklogLoad
from workers.pipeline.shedding.arrivals import AppendedCounts, Rates
from workers.pipeline.shedding.choice import BatchMeasures, cost_factor, needed_positions
from workers.pipeline.shedding.window_steps import EventTimes

# The costs are 100 times the real ones, 0.1 ms per record; an empty batch takes 0.5 s, the longest
# one 4 s: so 0.875 of the time is left for records.
LADDER = compiled_ladder(replace(input_ladder(1, 0.01, drain_ms=8_000), empty_batch_ms=500))
REAL_S = 0.0001
CAPACITY = 0.875 / REAL_S


def row(records: int, *, empty_s: float = 0.5, position: float = 0.0) -> dict[str, Any]:
    """Return the telemetry of a batch that read so many records, and dropped by a position."""
    kept = records * LADDER.part((1, 0), position)
    work_ms = round(1000 * (empty_s + REAL_S * kept))
    return {
        "in": records, "streams": {"1": records}, "work_ms": work_ms, "ladder_position": position,
    }  # fmt: skip


def needed(per_s: float, factor: float) -> float:
    """Return the position that these records/s of stream 1 need."""
    rates = Rates(np.array([per_s]), 1_000)
    appended = AppendedCounts(np.zeros(1), np.zeros(1))
    times = EventTimes({}, {})
    measured = BatchMeasures(appended, rates, {0: BacklogLoad(0, 1.0)}, {}, times, 9, 0, factor)
    return needed_positions(LADDER, measured).with_backlogs


def test_nothing_is_dropped_while_batches_are_as_short_as_empty_ones() -> None:
    """By the assumed costs, 100 records/s would be too many."""
    quiet = [row(2_000), row(900)]
    assert cost_factor(LADDER, quiet, {}) == 0
    assert needed(2_000, cost_factor(LADDER, quiet, {})) == 0


@pytest.mark.parametrize("position", [0.0, 1.5])
def test_two_long_batches_show_the_real_costs(position: float) -> None:
    records = round(20_000 / LADDER.part((1, 0), position))
    long = [row(records, position=position)] * 2
    factor = cost_factor(LADDER, long, {})
    assert factor * 0.01 == pytest.approx(REAL_S / 0.875, rel=1e-3)
    assert needed(0.99 * CAPACITY, factor) == 0
    assert needed(2.001 * CAPACITY, factor) == pytest.approx(1, abs=0.01)


def test_a_single_long_batch_shows_no_costs() -> None:
    paused = row(500, empty_s=3.0)
    assert cost_factor(LADDER, [paused, row(500)], {}) == 0
    assert cost_factor(LADDER, [paused], {}) == 0
    assert cost_factor(LADDER, [{}, {"in": 5}], {}) == 0


def test_costs_of_emulated_nodes_are_not_assumed() -> None:
    costs = (*LADDER.ladder.costs, Cost(1, 0, ResourceKind.NODE, 1, 0.001))
    ladder = compiled_ladder(replace(LADDER.ladder, costs=costs))
    long = [row(20_000)] * 2
    with_node_1 = cost_factor(ladder, long, {1: 1_000.0})
    assert with_node_1 == pytest.approx(cost_factor(LADDER, long, {}))
    assert cost_factor(ladder, long, {0: 100.0, 1: 1_000.0}) == 0
