"""Query types: queries that read the same set of sources, section 2."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from algorithms.vocabulary import Ints, SmallInts


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
    bounds = indptr.tolist()
    known: dict[bytes, int] = {}
    data, width = indices.tobytes(), indices.itemsize
    of_query = np.empty(len(bounds) - 1, np.int32)
    firsts: list[int] = []
    for query, (start, end) in enumerate(pairwise(bounds)):
        number = known.setdefault(data[start * width : end * width], len(firsts))
        if number == len(firsts):
            firsts.append(query)
        of_query[query] = number
    rows, sources = _picked(indptr, indices, np.array(firsts, np.int64))
    sizes = np.bincount(of_query, minlength=len(firsts)).astype(np.int64)
    return QueryTypes(of_query, sizes, rows, sources)


def _picked(indptr: Ints, indices: SmallInts, queries: Ints) -> tuple[Ints, SmallInts]:
    """Return the rows of the given queries, in that order."""
    lengths = indptr[queries + 1] - indptr[queries]
    rows = np.zeros(len(queries) + 1, np.int64)
    np.cumsum(lengths, out=rows[1:])
    within = np.arange(rows[-1]) - np.repeat(rows[:-1], lengths)
    return rows, indices[np.repeat(indptr[queries], lengths) + within]


def readers_by_source(types: QueryTypes, sources: int) -> tuple[Ints, SmallInts]:
    """Return the inverse rows: for each source, the types that read it (indptr, indices)."""
    owner = np.repeat(np.arange(len(types), dtype=np.int32), np.diff(types.indptr))
    order = np.argsort(types.indices, kind="stable")
    rows = np.zeros(sources + 1, np.int64)
    np.cumsum(np.bincount(types.indices, minlength=sources), out=rows[1:])
    return rows, owner[order]
