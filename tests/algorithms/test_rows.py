import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from algorithms.rows import normalise_rows

# Rows beyond sixteen entries are sorted another way than short ones.
ROWS = st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=60), max_size=12)


@given(rows=ROWS)
def test_each_row_ascends_and_names_a_source_once(rows: list[list[int]]) -> None:
    indptr = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    flat = np.array([source for row in rows for source in row], np.int32)
    bounds, indices = normalise_rows(indptr, flat)
    found = [indices[bounds[i] : bounds[i + 1]].tolist() for i in range(len(rows))]
    assert found == [sorted(set(row)) for row in rows]
    assert len(indices) == bounds[-1]


def test_a_long_row_is_sorted_in_no_time() -> None:
    """A query over all of a hundred thousand sources, named backwards."""
    flat = np.arange(100_000, dtype=np.int32)[::-1].copy()
    _, indices = normalise_rows(np.array([0, 100_000]), flat)
    assert indices.tolist() == list(range(100_000))
