"""Checks of input that several planners share; each names the invalid value and the reason."""

import math
import numbers
from typing import Any

import numpy as np

from algorithms.errors import BadProblem
from algorithms.vocabulary import Floats, Ints

# Sums stay finite and far from the largest double.
_LARGEST = 1e200


def as_integers(where: str, values: Any) -> Ints:
    """Return `values` as a new int64 vector; floats and text are rejected, not rounded."""
    vector: Ints = _vector(where, values, "iu", "whole numbers").astype(np.int64)
    return vector


def amounts(where: str, values: Any) -> Floats:
    """Return the values as a new float64 vector, finite and not negative."""
    array: Floats = _vector(where, values, "iuf", "numbers").astype(np.float64)
    wrong = ~(np.isfinite(array) & (array >= 0))
    refuse_first(where, array, wrong, "must be finite and not negative, not {}")
    refuse_first(where, array, array > _LARGEST, f"must be at most {_LARGEST:g}")
    return array


def numbers_below(where: str, values: Any, bound: int, what: str) -> Ints:
    """Return numbers from 0 to `bound` - 1 as a new vector; messages name them `what`."""
    array = as_integers(where, values)
    wrong = (array < 0) | (array >= bound)
    refuse_first(where, array, wrong, f"{what} {{}} is unknown (0 to {bound - 1})")
    return array


def refuse_first(where: str, array: Any, wrong: Any, why: str) -> None:
    """Raise `BadProblem` for the first value of which `wrong` bool[n] is true, if there is one.

    `why` has `{}` in the place of the value.
    """
    places = np.flatnonzero(wrong)
    if len(places):
        first = int(places[0])
        raise BadProblem(f"{where}[{first}]", why.format(array[first]))


def check_count(where: str, number: Any) -> None:
    """Raise `BadProblem` unless the count is a whole number of at least one."""
    if isinstance(number, bool) or not isinstance(number, numbers.Integral):
        raise BadProblem(where, f"must be a whole number, not {number!r}")
    if int(number) < 1:
        raise BadProblem(where, f"must be at least 1, not {number}")


def check_slack(where: str, slack: Any) -> None:
    """Raise `BadProblem` unless the slack is finite and not negative."""
    if isinstance(slack, bool) or not isinstance(slack, numbers.Real):
        raise BadProblem(where, f"must be a number, not {slack!r}")
    if not math.isfinite(float(slack)) or float(slack) < 0:
        raise BadProblem(where, f"must be finite and not negative, not {slack}")


def _vector(where: str, values: Any, kinds: str, what: str) -> Any:
    """Return `values` as a new vector whose type is of one of these numpy kinds."""
    try:
        array = np.array(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadProblem(where, f"must be a flat list of {what}") from error
    if array.ndim != 1:
        raise BadProblem(where, f"must have one dimension, not {array.ndim}")
    if array.size and array.dtype.kind not in kinds:
        raise BadProblem(where, f"must hold {what}, not {array.dtype}")
    return array
