"""Pairing heaps of (added rate, size, type), many of them in one pool of cells.

A server's heap holds the types that share a source with it. Keys only change by pushing a better
copy; a copy that is out of date is recognised and dropped when it comes to the top, which is why
there is no decrease-key.
"""

from typing import NamedTuple

import numpy as np

from algorithms.compiled import compiled
from algorithms.vocabulary import Floats, Ints, SmallInts

# Columns of `Pool.cells`.
SIZE, TYPE, CHILD, NEXT = 0, 1, 2, 3
# Entries of `Pool.marks`: cells handed out so far, head of the list of returned cells.
USED, FREED = 0, 1
NONE = -1


class Pool(NamedTuple):
    """Cells of all heaps: `added` float64[c], `cells` int32[c, 4], `marks` int64[2]."""

    added: Floats
    cells: SmallInts
    marks: Ints


def new_pool(cells: int) -> Pool:
    """Return a pool with room for `cells` entries; it grows when they are used up."""
    return Pool(np.empty(cells), np.empty((cells, 4), np.int32), np.array([0, NONE], np.int64))


@compiled
def is_better(added_a: float, size_a: int, added_b: float, size_b: int) -> bool:
    """Whether a comes before b: less added rate, then the larger type."""
    return added_a < added_b or (added_a == added_b and size_a > size_b)


@compiled
def meld(pool: Pool, a: int, b: int) -> int:
    """Join two heaps and return the root."""
    if a == NONE:
        return b
    if b == NONE:
        return a
    if _precedes(pool, b, a):
        a, b = b, a
    pool.cells[b, NEXT] = pool.cells[a, CHILD]
    pool.cells[a, CHILD] = b
    return a


@compiled
def push(pool: Pool, root: int, added: float, size: int, kind: int) -> tuple[Pool, int]:
    """Add an entry and return the pool, which may have grown, and the root."""
    pool, cell = _taken(pool)
    pool.added[cell] = added
    pool.cells[cell, SIZE] = size
    pool.cells[cell, TYPE] = kind
    pool.cells[cell, CHILD] = NONE
    pool.cells[cell, NEXT] = NONE
    return pool, meld(pool, root, cell)


@compiled
def pop(pool: Pool, root: int) -> int:
    """Give the top's cell back and return the new root, or -1 of an empty heap."""
    pairs = _paired(pool, pool.cells[root, CHILD])
    pool.cells[root, NEXT] = pool.marks[FREED]
    pool.marks[FREED] = root
    top = NONE
    while pairs != NONE:
        rest = pool.cells[pairs, NEXT]
        pool.cells[pairs, NEXT] = NONE
        top = meld(pool, top, pairs)
        pairs = rest
    return top


@compiled
def _precedes(pool: Pool, a: int, b: int) -> bool:
    if pool.added[a] != pool.added[b]:
        return bool(pool.added[a] < pool.added[b])
    if pool.cells[a, SIZE] != pool.cells[b, SIZE]:
        return bool(pool.cells[a, SIZE] > pool.cells[b, SIZE])
    return bool(pool.cells[a, TYPE] < pool.cells[b, TYPE])


@compiled
def _paired(pool: Pool, node: int) -> int:
    """Join siblings two by two and return the chain of the joined, last pair first."""
    pairs = NONE
    while node != NONE:
        first, second = node, pool.cells[node, NEXT]
        node = NONE if second == NONE else pool.cells[second, NEXT]
        pool.cells[first, NEXT] = NONE
        if second != NONE:
            pool.cells[second, NEXT] = NONE
        joined = meld(pool, first, second)
        pool.cells[joined, NEXT] = pairs
        pairs = joined
    return pairs


@compiled
def _taken(pool: Pool) -> tuple[Pool, int]:
    cell = pool.marks[FREED]
    if cell != NONE:
        pool.marks[FREED] = pool.cells[cell, NEXT]
        return pool, cell
    cell = pool.marks[USED]
    pool.marks[USED] += 1
    if cell == len(pool.added):
        pool = _grown(pool)
    return pool, cell


@compiled
def _grown(pool: Pool) -> Pool:
    had = len(pool.added)
    added, cells = np.empty(2 * had), np.empty((2 * had, 4), np.int32)
    added[:had] = pool.added
    cells[:had] = pool.cells
    return Pool(added, cells, pool.marks)
