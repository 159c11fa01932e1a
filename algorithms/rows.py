"""Compressed sparse rows: row i has the entries `indptr[i]:indptr[i + 1]`."""

import numpy as np

from algorithms.compiled import compiled
from algorithms.vocabulary import Ints, SmallInts


def boundaries(lengths: Ints) -> Ints:
    """Return where rows of these lengths begin and the last one ends, int64[n + 1]."""
    indptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr


def within(lengths: Ints) -> Ints:
    """Return the position of each entry in its row: 0, 1, 2, ... for each of these lengths."""
    places: Ints = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return places


def pick_rows(indptr: Ints, rows: Ints | SmallInts) -> tuple[Ints, Ints]:
    """Return the boundaries of the picked rows, int64[n + 1], and where their entries are."""
    lengths = indptr[rows + 1] - indptr[rows]
    return boundaries(lengths), np.repeat(indptr[rows], lengths) + within(lengths)


def group_positions(numbers: Ints | SmallInts, groups: int) -> tuple[Ints, Ints]:
    """Return as rows the positions of each number from 0 on: boundaries and positions."""
    indptr = boundaries(np.bincount(numbers, minlength=groups))
    return indptr, np.argsort(numbers, kind="stable")


def normalise_rows(indptr: Ints, indices: SmallInts) -> tuple[Ints, SmallInts]:
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
