"""Fixed and marginal costs: least-squares lines through samples of micro-batches."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.vocabulary import Floats

# The minimum number of samples, and how many of them give the first line, whose cost is quadratic.
LEAST_SAMPLES: Final = 20
_FIRST_SAMPLES: Final = 150
# The spread of the records (90th to 10th percentile) over their median.
LEAST_SPREAD: Final = 0.1
# Standard errors from which a slope is accepted. Samples that follow each other are not
# independent, so two standard errors of independent ones would accept too much.
SURE: Final = 4.0
# Samples further from the first line than so many standard deviations are outliers.
_OUTLIER: Final = 3.5
# The standard deviation of normal values over their median absolute deviation.
_NORMAL: Final = 1.4826


@dataclass(frozen=True)
class Line:
    """A line through samples: `y` for `x` = 0, its slope, and the standard error of the slope."""

    fixed: float
    slope: float
    error: float
    samples: int

    @property
    def is_sure(self) -> bool:
        """Return whether the slope is positive beyond its error."""
        return self.slope > SURE * self.error and self.slope > 0


def line_through(x: Floats, y: Floats) -> Line | None:
    """Return the least-squares line through samples without outliers, None if too few differ.

    The first line has the median slope of pairs (Theil and Sen), which up to 29 % of outliers, as
    those of a warm-up, do not move; samples far from it do not count in the second one. `fixed` is
    at least 0.
    """
    if not has_spread(x):
        return None
    first = np.linspace(0, len(x) - 1, min(len(x), _FIRST_SAMPLES)).astype(np.int64)
    # Not scipy.stats: each process would take 17 MB and 0.3 s for it.
    left, right = first[np.stack(np.triu_indices(len(first), 1))]
    pairs = x[left] != x[right]
    slope = np.median((y[left] - y[right])[pairs] / (x[left] - x[right])[pairs])
    start = np.median(y[first]) - slope * np.median(x[first])
    distance = np.abs(y - start - slope * x)
    near = distance <= _OUTLIER * _NORMAL * np.median(distance) + 1e-12
    x, y = x[near], y[near]
    if not has_spread(x):
        return None
    middle = x.mean()
    square = float(((x - middle) ** 2).sum())
    slope = float(((x - middle) * y).sum()) / square
    fixed = float(y.mean() - slope * middle)
    rest = y - fixed - slope * x
    error = float(np.sqrt((rest**2).sum() / (len(x) - 2) / square))
    return Line(max(0.0, fixed), slope, error, len(x))


def has_spread(x: Floats) -> bool:
    """Return whether samples are enough, and differ enough, to have a slope."""
    if len(x) < LEAST_SAMPLES:
        return False
    low, middle, high = np.percentile(x, (10, 50, 90))
    return bool(high - low > LEAST_SPREAD * middle)
