"""Estimates of counts and sums over all records of a window, from those that drop rules kept.

Each record was kept with a probability of its own, independently of the others. The sample of the
window and key estimates how many records are missing (`wire.aggregates.sampling`), and the kept
ones stand for them.
"""

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from controlplane.wire.aggregates.sampling import Sampled
from controlplane.wire.language.aggregates import Aggregate
from controlplane.wire.language.tree import Expression
from controlplane.wire.query import Computation

# Of the normal distribution: 95 % of it are within so many standard deviations of the mean.
_Z: Final = 1.959964
# How far Student's distribution with d degrees of freedom goes beyond it: the sum of the first over
# d, the second over d ** 2, and so on (Abramowitz and Stegun, 26.7.5).
_STUDENT: Final = (2.3722, 2.8225, 2.5558, 1.5896)


class ResultEstimate(NamedTuple):
    """An estimate over all records, and its 95 % confidence interval; None: it is not known."""

    value: float
    low: float | None = None
    high: float | None = None


def estimates_of(
    computation: Computation, values: Mapping[str, Any], sampled: Sampled
) -> dict[str, ResultEstimate]:
    """Return the estimates of the counts and sums of a window, by the names of the aggregates.

    `values`: of all aggregates, as results have them.
    """
    aggregates = dict(computation.aggregates)
    result = {}
    for name, aggregate in aggregates.items():
        value = _number(values.get(name))
        if value is None or aggregate.function not in ("count", "sum"):
            continue
        if aggregate.function == "count":
            result[name] = scaled_count(value, sampled)
        else:
            known = _Known(aggregates, values, aggregate.argument)
            squares = known.sum_of_squares(value, sampled.records)
            result[name] = scaled_sum(value, sampled, squares)
    return {name: estimate for name, estimate in result.items() if math.isfinite(estimate.value)}


def scaled_count(count: float, sampled: Sampled) -> ResultEstimate:
    """Return the estimate of the number of records of which `count` are in a sample.

    The interval is the score interval of the part of the records that rules could drop, all with
    the chance that gives the variance of the sample: of the numbers N for which what was kept is
    within 1.96 standard deviations of N p. For large counts of records of one chance p it is
    count / p +- 1.96 sqrt(count (1 - p)) / p. It always contains the estimate.
    """
    return ResultEstimate(*_scaled(count, sampled))


def _scaled(count: float, sampled: Sampled) -> tuple[float, float, float]:
    """Return the estimate of a count and the ends of its interval."""
    part, missing = count / sampled.records, count / sampled.records * sampled.missing
    # The variance of the missing number is this times the number: 1 / p for one chance.
    weight = part * sampled.variance / sampled.missing + (1 - part) * (
        1 + sampled.missing / sampled.records
    )
    rest = weight - 1
    at_risk = min(count, missing / rest) if rest > 0 else count
    middle = at_risk + missing + _Z**2 * rest / 2
    high = middle + _Z * math.sqrt((at_risk + missing) * rest + (_Z * rest / 2) ** 2)
    # The product of both ends is the square of the estimate.
    low = (at_risk + missing) ** 2 / high if high else 0.0
    least, most = min(missing, max(0.0, low - at_risk)), max(missing, high - at_risk)
    return count + missing, count + least, count + most


def scaled_sum(total: float, sampled: Sampled, squares: float | None) -> ResultEstimate:
    """Return the estimate of a sum over all records; `squares`: the sum of squares of kept values.

    The missing records have the mean of the kept ones. The interval has the uncertainty of their
    number, as `scaled_count`, and that of their values by Student's distribution, independent of
    each other. It takes two kept records.
    """
    records, mean = sampled.records, total / sampled.records
    count, low, high = _scaled(records, sampled)
    value = mean * count
    if squares is None or not math.isfinite(squares) or records == 1:
        return ResultEstimate(value)
    variance = max(0.0, squares - total * mean) / (records - 1)
    factor = _Z + sum(part / (records - 1) ** (n + 1) for n, part in enumerate(_STUDENT))
    reach = factor * math.sqrt(variance * sampled.missing * count / records)
    sides = sorted((mean * (low - count), mean * (high - count)))
    least, most = value - math.hypot(sides[0], reach), value + math.hypot(sides[1], reach)
    return (
        ResultEstimate(value, least, most) if math.isfinite(most - least) else ResultEstimate(value)
    )


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

    def sum_of_squares(self, total: float, records: int) -> float | None:
        """Return the sum of the squares of the values, or a bound of it; None: neither is known."""
        known = self._by_function
        count, mean, variance = known.get("count"), known.get("mean"), known.get("variance")
        if variance is None and "stddev" in known:
            variance = known["stddev"] * known["stddev"]
        if count is None and mean:
            count = round(total / mean)
        if count == 1:
            return total * total
        if count and variance is not None:
            return max(0.0, (count - 1) * variance + total * total / count)
        return self._bound(total, records if count is None else count)

    def _bound(self, total: float, count: float) -> float | None:
        """Return a bound of the sum of squares from the smallest and the largest value."""
        known = self._by_function
        if "min" not in known or "max" not in known:
            return None
        low, high = known["min"], known["max"]
        if low >= 0 or high <= 0:
            return max(abs(low), abs(high)) * abs(total)
        # (x - low) (high - x) >= 0 for each value x; some records may have no value.
        return (low + high) * total - count * low * high


def _number(value: Any) -> float | None:
    """Return a finite value of an aggregate as a number, None for others."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
