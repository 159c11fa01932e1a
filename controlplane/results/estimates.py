"""Estimates of counts and sums over all records of a window, from those that drop rules kept.

Each record was kept with probability p, independently of the others. So a count n and a sum s of
the kept records are those of all records times p in expectation, and n / p and s / p are unbiased.
"""

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from controlplane.results.kept import Kept
from controlplane.wire.language.aggregates import Aggregate
from controlplane.wire.language.tree import Expression
from controlplane.wire.query import Computation

# Of the normal distribution: 95 % of it are within so many standard deviations of the mean.
_Z: Final = 1.959964


class Estimate(NamedTuple):
    """An estimate over all records, and its 95 % confidence interval; None: it is not known."""

    value: float
    low: float | None = None
    high: float | None = None


def estimates_of(
    computation: Computation, values: Mapping[str, Any], kept: Kept
) -> dict[str, Estimate]:
    """Return the estimates of the counts and sums of a window, by the names of the aggregates.

    `values`: of all aggregates, as results have them. Empty if all records were kept or the
    fraction is unknown, and for joins, whose pairs are not kept independently.
    """
    fraction = kept.fraction
    if fraction is None or not 0 < fraction < 1 or computation.join is not None:
        return {}
    aggregates = dict(computation.aggregates)
    result = {}
    for name, aggregate in aggregates.items():
        value = _number(values.get(name))
        if value is None or aggregate.function not in ("count", "sum"):
            continue
        if not kept.is_random:
            result[name] = Estimate(value / fraction)
        elif aggregate.function == "count":
            result[name] = scaled_count(value, fraction)
        else:
            known = _Known(aggregates, values, aggregate.argument)
            result[name] = scaled_sum(value, fraction, known.sum_of_squares(value))
    return result


def scaled_count(count: float, fraction: float) -> Estimate:
    """Return the estimate of the number of records of which `count` were kept.

    The interval is the score interval: of the numbers N for which `count` is within 1.96 standard
    deviations of N p. For large counts it is count / p +- 1.96 sqrt(count (1 - p)) / p.
    """
    rest = 1 - fraction
    middle = count / fraction + _Z**2 * rest / (2 * fraction)
    reach = _Z / fraction * math.sqrt(count * rest + (_Z * rest / 2) ** 2)
    return Estimate(count / fraction, max(count, middle - reach), middle + reach)


def scaled_sum(total: float, fraction: float, squares: float | None) -> Estimate:
    """Return the estimate of a sum over all records; `squares`: the sum of squares of kept values.

    The variance of the estimate is (1 - p) / p times the sum of the squares of all values, which
    is estimated by that of the kept ones over p.
    """
    if squares is None:
        return Estimate(total / fraction)
    reach = _Z * math.sqrt((1 - fraction) * squares) / fraction
    return Estimate(total / fraction, total / fraction - reach, total / fraction + reach)


class _Known:
    """The aggregates of a window over one argument, by function."""

    def __init__(
        self,
        aggregates: Mapping[str, Aggregate],
        values: Mapping[str, Any],
        argument: Expression | None,
    ) -> None:
        self._by_function: dict[str, float] = {}
        for name, aggregate in aggregates.items():
            value = _number(values.get(name))
            if value is None:
                continue
            if aggregate.argument == argument:
                self._by_function[aggregate.function] = value
            elif aggregate.argument is None:
                self._by_function["records"] = value

    def sum_of_squares(self, total: float) -> float | None:
        """Return the sum of the squares of the values, or a bound of it; None: neither is known."""
        known = self._by_function
        count, mean, variance = known.get("count"), known.get("mean"), known.get("variance")
        if variance is None and "stddev" in known:
            variance = known["stddev"] ** 2
        if count is None and mean:
            count = round(total / mean)
        if count and variance is not None:
            return max(0.0, (count - 1) * variance + total**2 / count)
        return self._bound(total, count)

    def _bound(self, total: float, count: float | None) -> float | None:
        """Return a bound of the sum of squares from the smallest and the largest value."""
        known = self._by_function
        if "min" not in known or "max" not in known:
            return None
        low, high = known["min"], known["max"]
        if low >= 0 or high <= 0:
            return max(abs(low), abs(high)) * abs(total)
        # (x - low) (high - x) >= 0 for each value x; some records may have no value.
        count = known.get("records") if count is None else count
        return None if count is None else (low + high) * total - count * low * high


def _number(value: Any) -> float | None:
    """Return a finite value of an aggregate as a number, None for others."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
