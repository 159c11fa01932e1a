"""Rows that others replace within epsilon."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.lab.shedding.fit.central import FitTables
from algorithms.lab.shedding.fit.cover import COVER_ABOVE, covering_rows
from algorithms.lab.shedding.fit.rules import RowRule
from algorithms.lab.shedding.fit.sampling import grid
from tests.algorithms.lab.shedding.fit.test_central import assert_guarantee, rate_points
from tests.algorithms.shedding import networks


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.floats(0.05, 0.4))
def test_optima_of_rows_that_are_left_out_have_a_kept_row_below(
    seed: int, streams: int, epsilon: float
) -> None:
    random = np.random.default_rng(seed)
    levels = [np.concatenate([[0.0], np.cumsum(random.random(7))]) for _ in range(streams)]
    limits = random.random((2, streams)) / 3
    values = random.random(streams) + 0.1
    places = grid(levels, limits, outer=True)
    kept = covering_rows(levels, places, limits, values, epsilon)
    assert kept.any()
    rates = np.column_stack([level[column] for level, column in zip(levels, places.T, strict=True)])
    ends = [np.append(level[1:], level[-1]) for level in levels]
    above = np.column_stack([end[column] for end, column in zip(ends, places.T, strict=True)])
    for row in np.flatnonzero(~kept):
        below = kept & (rates <= rates[row]).all(axis=1)
        assert below.any()
        # Feasible rates of the cell of the row: points between it and its next samples up.
        points = rates[row] + (above[row] - rates[row]) * random.random((50, streams))
        points = points[(points @ limits.T <= 1).all(axis=1)]
        best = (rates[below] @ values).max()
        assert (best >= (1 - epsilon) * points @ values - 1e-9).all()


def test_four_inputs_keep_the_guarantee_with_fewer_rows() -> None:
    network = networks.crossed(32, 16, pairs=2)
    tables = FitTables.of(network, 0.2)
    assert COVER_ABOVE < tables.rows < 2_000
    assert tables.rows < FitTables.of(network, 0.2, rule=RowRule.ALL).rows / 10
    assert_guarantee(network, tables, rate_points(network, 1, 300), 0.2)
