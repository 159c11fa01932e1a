"""Pairing heaps of (added rate, size, type), many of them in one pool of cells.

A server's heap holds the types that share a source with it. Keys only change by pushing a better
copy; a copy with an old key is dropped at the top, so there is no decrease-key.
"""

from typing import NamedTuple

import numpy as np

from algorithms.compiled import compiled, inlined
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
    """Return a pool with room for `cells` entries; a full pool grows."""
    return Pool(np.empty(cells), np.empty((cells, 4), np.int32), np.array([0, NONE], np.int64))


@compiled
def is_better(added_a: float, size_a: int, added_b: float, size_b: int) -> bool:
    """Whether a comes before b: less added rate, then the larger type."""
    return added_a < added_b or (added_a == added_b and size_a > size_b)


@inlined
def meld(added: Floats, cells: SmallInts, a: int, b: int) -> int:
    """Join two heaps, of which neither is empty, and return the root.

    `added`, `cells` are those of the pool.
    """
    first, second = a, b
    if added[b] != added[a]:
        swap = added[b] < added[a]
    elif cells[b, SIZE] != cells[a, SIZE]:
        swap = cells[b, SIZE] > cells[a, SIZE]
    else:
        swap = cells[b, TYPE] < cells[a, TYPE]
    if swap:
        first, second = b, a
    cells[second, NEXT] = cells[first, CHILD]
    cells[first, CHILD] = second
    return first


@compiled
def push(pool: Pool, root: int, added: float, size: int, kind: int) -> tuple[Pool, int]:
    """Add an entry and return the pool, which may have grown, and the root."""
    pool = with_room(pool, 1)
    return pool, insert(pool.added, pool.cells, pool.marks, root, added, size, kind)


@inlined
def insert(
    added_of: Floats,
    cells: SmallInts,
    marks: Ints,
    root: int,
    added: float,
    size: int,
    kind: int,
) -> int:
    """Add an entry to a pool with room for it (`with_room`), and return the root.

    The first three are the arrays of the pool: in a loop over many entries, references to them
    are counted once.
    """
    cell = marks[FREED]
    if cell != NONE:
        marks[FREED] = cells[cell, NEXT]
    else:
        cell = marks[USED]
        marks[USED] += 1
    added_of[cell] = added
    cells[cell, SIZE] = size
    cells[cell, TYPE] = kind
    cells[cell, CHILD] = NONE
    cells[cell, NEXT] = NONE
    return cell if root == NONE else meld(added_of, cells, root, cell)


@compiled
def pop(pool: Pool, root: int) -> int:
    """Free the top's cell and return the new root, -1 of an empty heap."""
    added, cells, marks = pool.added, pool.cells, pool.marks
    pairs, node = NONE, cells[root, CHILD]
    # Siblings are joined two by two, and the joined from the last one on.
    while node != NONE:
        first, second = node, cells[node, NEXT]
        joined = first
        if second == NONE:
            node = NONE
        else:
            node = cells[second, NEXT]
            joined = meld(added, cells, first, second)
        cells[joined, NEXT] = pairs
        pairs = joined
    cells[root, NEXT] = marks[FREED]
    marks[FREED] = root
    top = NONE
    while pairs != NONE:
        rest = cells[pairs, NEXT]
        cells[pairs, NEXT] = NONE
        top = pairs if top == NONE else meld(added, cells, top, pairs)
        pairs = rest
    return top


@compiled
def with_room(pool: Pool, entries: int) -> Pool:
    """Return the pool, grown if necessary, with unused cells for so many entries."""
    had, used = len(pool.added), pool.marks[USED]
    if used + entries <= had:
        return pool
    room = max(2 * had, used + entries)
    added, cells = np.empty(room), np.empty((room, 4), np.int32)
    added[:had] = pool.added
    cells[:had] = pool.cells
    return Pool(added, cells, pool.marks)
