from hypothesis import given
from hypothesis import strategies as st

from algorithms.placement.offline import heaps

ENTRY = st.tuples(st.integers(0, 3).map(float), st.integers(1, 3), st.integers(0, 5))


@given(st.lists(st.one_of(ENTRY, st.none()), max_size=60))
def test_a_heap_gives_its_entries_in_order(steps: list[tuple[float, int, int] | None]) -> None:
    """Least added rate, then the larger type, then the type that appeared first.

    The pool starts with one cell, so that growing and reusing cells happen all the time.
    """
    pool, root, expected = heaps.new_pool(1), heaps.NONE, list[tuple[float, int, int]]()
    for step in steps:
        if step is not None:
            pool, root = heaps.push(pool, root, *step)
            expected.append((step[0], -step[1], step[2]))
        elif expected:
            expected.sort()
            size, kind = pool.cells[root, heaps.SIZE], pool.cells[root, heaps.TYPE]
            assert (pool.added[root], -size, kind) == expected.pop(0)
            root = heaps.pop(pool, root)
    assert (root == heaps.NONE) == (not expected)
