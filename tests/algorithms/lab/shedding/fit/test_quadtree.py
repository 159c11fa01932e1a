"""The point quadtree finds the best row below any rates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.errors import TooLarge
from algorithms.lab.shedding.fit.quadtree import MAX_STREAMS, PointQuadtree
from algorithms.lab.shedding.fit.table import Table


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 60))
def test_best_row_is_that_of_a_search_of_all(seed: int, streams: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    rates = random.integers(0, 6, (rows, streams)).astype(np.float64)
    scores = random.integers(0, 9, rows).astype(np.float64)
    table = Table(rates, scores, np.ones(rows, np.bool_))
    chosen = random.random(rows) < 0.8
    for index, allowed in (
        (PointQuadtree.of(table), np.ones(rows, np.bool_)),
        (PointQuadtree.of(table, chosen | (np.arange(rows) == 0)), chosen | (np.arange(rows) == 0)),
    ):
        for point in random.integers(0, 7, (20, streams)).astype(np.float64):
            below = (rates <= point).all(axis=1) & allowed
            best = index.best(point)
            if not below.any():
                assert best == -1
            else:
                assert below[best]
                assert table.scores[best] == table.scores[below].max()


def test_too_many_streams() -> None:
    streams = MAX_STREAMS + 1
    with pytest.raises(TooLarge):
        PointQuadtree.of(Table(np.zeros((1, streams)), np.zeros(1), np.ones(1, np.bool_)))
