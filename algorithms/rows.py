"""Compressed sparse rows: row i has the entries `indptr[i]:indptr[i + 1]`."""

import numpy as np

from algorithms.vocabulary import Ints


def boundaries(lengths: Ints) -> Ints:
    """Return where rows of these lengths begin and the last one ends, int64[n + 1]."""
    indptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr


def within(lengths: Ints) -> Ints:
    """Return the position of each entry in its row: 0, 1, 2, ... for each of these lengths."""
    places: Ints = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return places


def picked(indptr: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Return the boundaries of the picked rows, int64[n + 1], and where their entries are."""
    lengths = indptr[rows + 1] - indptr[rows]
    return boundaries(lengths), np.repeat(indptr[rows], lengths) + within(lengths)


def grouped(numbers: Ints, groups: int) -> tuple[Ints, Ints]:
    """Return as rows the positions of each number from 0 on: boundaries and positions."""
    indptr = boundaries(np.bincount(numbers, minlength=groups))
    return indptr, np.argsort(numbers, kind="stable")
