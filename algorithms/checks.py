"""Checks of input that several planners share: each reports which value is wrong and why."""

from typing import Any

import numpy as np

from algorithms.errors import BadProblem
from algorithms.vocabulary import Floats, Ints

# Sums over everything stay finite, and far from where doubles end.
_LARGEST = 1e200


def as_integers(where: str, values: Any) -> Ints:
    """Return `values` as a new int64 vector; floats and text are refused, never rounded."""
    try:
        array = np.array(values)
    except ValueError as error:
        raise BadProblem(where, "must be a flat list of whole numbers") from error
    if array.ndim != 1:
        raise BadProblem(where, f"must have one dimension, not {array.ndim}")
    if array.size and array.dtype.kind not in "iu":
        raise BadProblem(where, f"must hold whole numbers, not {array.dtype}")
    return array.astype(np.int64)


def amounts(where: str, values: Any) -> Floats:
    """Return the values as a new float64 vector, finite and not negative."""
    try:
        array = np.array(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadProblem(where, "must be a flat list of numbers") from error
    if array.ndim != 1:
        raise BadProblem(where, f"must have one dimension, not {array.ndim}")
    if array.size and array.dtype.kind not in "iuf":
        raise BadProblem(where, f"must hold numbers, not {array.dtype}")
    array = array.astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if len(wrong):
        first = int(wrong[0])
        why = f"must be finite and not negative, not {array[first]}"
        raise BadProblem(f"{where}[{first}]", why)
    large = np.flatnonzero(array > _LARGEST)
    if len(large):
        raise BadProblem(f"{where}[{int(large[0])}]", f"must be at most {_LARGEST:g}")
    return array
