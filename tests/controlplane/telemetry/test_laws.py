"""Laws of numbers: over any window, parts add up to their whole, and ratios are those of sums."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.vocabulary import Floats
from controlplane.telemetry.grid import Grid
from controlplane.telemetry.samples import PreviousBatch, sample_of
from controlplane.wire.figures import FIGURES, RollUp
from tests.support.series import grid_of_samples

NODES, STREAMS, SPLITS = 3, 4, 2
NAMES = [figure.name for figure in FIGURES]
EPOCH = datetime.fromtimestamp(0, UTC)
# Records of a stream in a micro-batch, and of those how many each of two edges drops.
COUNTS = st.tuples(st.integers(0, 10_000), st.floats(0, 1), st.floats(0, 1))
BATCHES = st.lists(
    st.tuples(
        st.integers(100, 30_000),
        st.lists(COUNTS, min_size=STREAMS, max_size=STREAMS),
        st.lists(st.integers(0, 10_000), min_size=NODES, max_size=NODES),
    ),
    min_size=1,
    max_size=40,
)
Counts = tuple[int, float, float]
Batch = tuple[int, list[Counts], list[int]]


def row_of(
    emitted_ms: int, streams: Sequence[tuple[int, float, float]], loads: Sequence[int]
) -> Any:
    """Return a telemetry row; the last stream has no query."""
    read = {str(stream): count for stream, (count, _, _) in enumerate(streams)}
    return {
        "emitted_ms": emitted_ms, "in": sum(read.values()), "streams": read,
        "read": sum(count for count, _, _ in streams[:-1]), "delivered": sum(loads),
        "nodes": [{"node": node, "loads": load} for node, load in enumerate(loads)],
        "splits": [
            {"split": split, "split_loads": sum(count for count, _, _ in streams[split::SPLITS])}
            for split in range(SPLITS)
        ],
        "dropped": {f"{s}": int(part * count) for s, (count, part, _) in enumerate(streams)},
        "ladder_dropped": {f"{s}>7": int(part * n) for s, (n, _, part) in enumerate(streams)},
    }  # fmt: skip


def grid_of_batches(batches: Sequence[Batch]) -> Grid:
    """Return the series of micro-batches with any distances."""
    samples, emitted_ms = [], 1_000
    for milliseconds, streams, loads in batches:
        before = PreviousBatch(emitted_ms, 1_000)
        emitted_ms += milliseconds
        samples.append(sample_of(row_of(emitted_ms, streams, loads), before, [100.0] * NODES))
    return grid_of_samples(NAMES, samples)


def assert_near(numbers: Floats, expected: Floats) -> None:
    np.testing.assert_allclose(numbers, expected, rtol=1e-9, atol=1e-6)


@given(BATCHES, st.integers(1, 100))
def test_numbers_of_any_window_agree(batches: list[Batch], seconds: int) -> None:
    raw = grid_of_batches(batches)
    for grid in (raw, raw.every(seconds), raw.every(seconds).every(10 * seconds), raw.window()):
        read, full = grid["read"], grid["read"] > 0
        assert_near(grid["delivered"][full], (read * grid["rf"])[full])
        assert np.isnan(grid["rf"][~full]).all()
        known = grid["in"] > 0
        kept = np.where(known, grid["kept"], 1.0)
        assert_near(grid["in"] * kept + grid["dropped"], grid["in"])
        assert_near(grid["loads"].sum(axis=1), grid["delivered"])
        assert_near(grid["split_loads"].sum(axis=1), grid["in"])


@given(BATCHES, st.integers(1, 20), st.integers(1, 6))
def test_a_window_is_the_same_of_batches_and_of_roll_ups(
    batches: list[Batch], seconds: int, times: int
) -> None:
    """Of what every batch has; a largest, last or mean value is that of all batches."""
    raw = grid_of_batches(batches)
    steps, once = raw.every(seconds).every(times * seconds), raw.every(times * seconds)
    for figure in FIGURES:
        if figure.roll_up is not RollUp.MEAN or figure.name not in ("kept", "rf", "in", "loads"):
            continue
        assert_near(steps[figure.name], once[figure.name])


def test_a_record_that_several_edges_drop_counts_once() -> None:
    """Of 100 records, two edges drop 40 and 60: 60 are lacking somewhere."""
    grid = grid_of_batches([(1_000, [(100, 0.4, 0.6), (100, 0, 0), (0, 0, 0), (0, 0, 0)], [1] * 3)])
    assert grid["dropped"].tolist() == [60.0]
    assert grid["kept"].tolist() == pytest.approx([0.7])


def test_arriving_records_cause_the_loads_while_a_backlog_is_worked_off() -> None:
    """Twice as many are read as arrive: half of the deliveries are of the backlog."""
    samples = [
        {"t": 1000 * t, "span_s": 1.0, "arrived": 50.0, "in": 100.0, "loads": [80.0, 40.0]}
        for t in range(9)
    ]
    grid = grid_of_samples(("loads", "arrived", "in"), samples)
    part = grid.window_of(EPOCH + timedelta(seconds=2), EPOCH + timedelta(seconds=5))
    assert (part.loads.tolist(), part.measured_s.tolist()) == ([[40.0, 20.0]], [3.0])
