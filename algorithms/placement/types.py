"""Query types: queries that read the same set of sources, section 2."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.compiled import compiled
from algorithms.rows import group_positions, pick_rows
from algorithms.vocabulary import Ints, SmallInts

# 2 ** 64 over the golden ratio, odd: a multiplication by it spreads near values.
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, eq=False)
class QueryTypes:
    """Queries collapsed by source set; types are numbered in order of first appearance.

    `of_query` int32[n]: the type of each query. `sizes` int64[T]: queries per type.
    `indptr` int64[T + 1], `indices` int32[...]: the sources of each type, ascending.
    """

    of_query: SmallInts
    sizes: Ints
    indptr: Ints
    indices: SmallInts

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def single_source(self) -> bool:
        """Whether every query reads exactly one source, section 4.2."""
        return len(self.indices) == len(self)


def collapse(indptr: Ints, indices: SmallInts) -> QueryTypes:
    """Collapse queries, given as rows of ascending sources, into types."""
    of_query = np.empty(len(indptr) - 1, np.int32)
    # The compiled loop knows one kind of array: those that may be written.
    firsts = _number(np.array(indptr), np.array(indices), of_query)
    rows, entries = pick_rows(indptr, firsts)
    sizes = np.bincount(of_query, minlength=len(firsts)).astype(np.int64)
    return QueryTypes(of_query, sizes, rows, indices[entries])


@compiled
def _number(indptr: Ints, indices: SmallInts, of_query: SmallInts) -> Ints:
    """Write the type of each query; return the first query of each type.

    A hash table with open addressing, at most half full; its slots hold numbers of types.
    """
    queries = len(of_query)
    size = 2
    while size < 2 * queries:
        size *= 2
    slots = np.full(size, -1, np.int32)
    firsts = np.empty(queries, np.int64)
    count = 0
    for query in range(queries):
        slot = _hash(indices, indptr[query], indptr[query + 1]) & (size - 1)
        while slots[slot] != -1:
            if _same(indptr, indices, firsts[slots[slot]], query):
                break
            slot = (slot + 1) & (size - 1)
        if slots[slot] == -1:
            slots[slot] = count
            firsts[count] = query
            count += 1
        of_query[query] = slots[slot]
    return firsts[:count].copy()


@compiled
def _hash(indices: SmallInts, start: int, end: int) -> np.int64:
    """Return 32 bits that depend on all of a row; the shift carries high bits to the low ones."""
    word = np.uint64(end - start)
    for entry in range(start, end):
        word = (word ^ np.uint64(indices[entry])) * _ODD
        word ^= word >> _HALF
    return np.int64(word & _LOW)


@compiled
def _same(indptr: Ints, indices: SmallInts, query: int, other: int) -> bool:
    start, shift = indptr[query], indptr[other] - indptr[query]
    if indptr[query + 1] - start != indptr[other + 1] - indptr[other]:
        return False
    for entry in range(start, indptr[query + 1]):
        if indices[entry] != indices[entry + shift]:
            return False
    return True


def readers_by_source(types: QueryTypes, sources: int) -> tuple[Ints, SmallInts]:
    """Return the inverse rows: for each source, the types that read it (indptr, indices)."""
    owner = np.repeat(np.arange(len(types), dtype=np.int32), np.diff(types.indptr))
    indptr, entries = group_positions(types.indices, sources)
    return indptr, owner[entries]
