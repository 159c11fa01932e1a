"""Compressed sparse rows of sources: each row ascending, each source once."""

from algorithms.compiled import compiled
from algorithms.vocabulary import Ints, SmallInts


def normalised(indptr: Ints, indices: SmallInts) -> tuple[Ints, SmallInts]:
    """Return the rows with the sources of each ascending and each once.

    `indptr` int64[n + 1] and `indices` int32[...] are used up: their memory is the result's.
    """
    kept = int(_normalise(indptr, indices))
    # A view would hold on to the memory of all repetitions.
    return indptr, indices if kept == len(indices) else indices[:kept].copy()


@compiled
def _normalise(indptr: Ints, indices: SmallInts) -> int:
    """Sort and shorten the rows in place; return how many entries are left."""
    kept, start = 0, indptr[0]
    for row in range(len(indptr) - 1):
        end = indptr[row + 1]
        if not _ascends(indices, start, end):
            indices[start:end].sort()
        first = kept
        for entry in range(start, end):
            if kept == first or indices[entry] != indices[kept - 1]:
                indices[kept] = indices[entry]
                kept += 1
        start = end
        indptr[row + 1] = kept
    return kept


@compiled
def _ascends(indices: SmallInts, start: int, end: int) -> bool:
    for entry in range(start + 1, end):  # noqa: SIM110 - compiled to a plain loop
        if indices[entry] < indices[entry - 1]:
            return False
    return True
