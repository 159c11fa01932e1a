"""Sources drawn by rank from a fixed set."""

import numpy as np
import pytest

from algorithms.errors import BadParameters
from benchmarks.planners.popularity import popularity_zipf


def test_shares_follow_the_rank() -> None:
    """One source per query, so that draws are independent: shares within sampling error."""
    readers = popularity_zipf(200_000, 50, 1, 1.0, seed=2).readers
    shares = 1 / np.arange(1, 51)
    expected = 200_000 * shares / shares.sum()
    assert (abs(readers - expected) < 5 * np.sqrt(expected)).all()


def test_every_query_reads_distinct_sources() -> None:
    """Also where it must read every source there is."""
    rows = popularity_zipf(300, 4, 4, 3.0, seed=1).indices.reshape(300, 4)
    assert np.sort(rows, axis=1).tolist() == [[0, 1, 2, 3]] * 300


def test_the_same_seed_draws_the_same_queries() -> None:
    """Reproducible figures."""
    one, same = (popularity_zipf(500, 40, 3, 1.0, seed=9) for _ in range(2))
    assert one.indices.tolist() == same.indices.tolist()


@pytest.mark.parametrize("width", [0, 5])
def test_a_query_cannot_read_more_sources_than_there_are(width: int) -> None:
    """Drawing would go on forever."""
    with pytest.raises(BadParameters, match="1 to 4"):
        popularity_zipf(10, 4, width, 1.0, seed=0)
