import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from algorithms.placement.types import collapse, readers_by_source

ROWS = st.lists(st.frozensets(st.integers(0, 5), min_size=1, max_size=4), max_size=60)


@given(queries=ROWS)
def test_types_are_the_source_sets_in_order_of_first_appearance(
    queries: list[frozenset[int]],
) -> None:
    """The order decides ties in every algorithm, so that it may not depend on any hash."""
    rows = [sorted(query) for query in queries]
    indptr = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    flat = np.array([source for row in rows for source in row], np.int32)
    types = collapse(indptr, flat)
    distinct = list(dict.fromkeys(queries))
    found = [set(types.indices[types.indptr[t] : types.indptr[t + 1]]) for t in range(len(types))]
    assert found == distinct
    assert types.of_query.tolist() == [distinct.index(query) for query in queries]
    assert types.sizes.tolist() == [queries.count(query) for query in distinct]


def test_many_types_are_told_apart() -> None:
    """More rows than a hash has room for without collisions: 2 ** 17 of one source each."""
    queries = 2**17
    types = collapse(np.arange(queries + 1), np.arange(queries, dtype=np.int32)[::-1].copy())
    assert len(types) == queries
    assert types.of_query.tolist() == list(range(queries))


def test_a_row_is_no_other_that_begins_like_it() -> None:
    types = collapse(np.array([0, 1, 3, 4]), np.array([0, 0, 1, 0], np.int32))
    assert types.of_query.tolist() == [0, 1, 0]
    assert not types.single_source


def test_input_that_may_not_be_written_is_collapsed() -> None:
    """A problem's arrays are frozen."""
    indptr, flat = np.arange(3), np.zeros(2, np.int32)
    for array in (indptr, flat):
        array.setflags(write=False)
    assert len(collapse(indptr, flat)) == 1


def test_each_source_knows_the_types_that_read_it() -> None:
    types = collapse(np.array([0, 1, 3, 4]), np.array([2, 0, 2, 0], np.int32))
    rows, readers = readers_by_source(types, 3)
    assert rows.tolist() == [0, 2, 2, 4]
    assert readers.tolist() == [1, 2, 0, 1]
