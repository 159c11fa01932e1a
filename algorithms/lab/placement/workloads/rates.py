"""Traffic of sources, section 6.4: Pareto rates, apart from or along with popularity."""

from typing import Literal

import numpy as np

from algorithms.errors import BadParameters
from algorithms.vocabulary import Floats, Ints, Seed

# How a source's rate goes with its popularity. The paper has "proportional" and "inversely
# proportional" of rates that are Pareto as well, which admits two readings: the draws sorted by
# popularity (positive, negative), or each draw times or over popularity (proportional, inverse).
Correlation = Literal["random", "positive", "negative", "proportional", "inverse"]


def pareto_rates(sources: int, shape: float, seed: Seed) -> Floats:
    """Return rates float64[m] of a Pareto law with the given shape and least value 1.

    Raises `BadParameters` unless the shape is positive.
    """
    if not shape > 0:
        raise BadParameters({"shape": [f"must be above 0, not {shape:g}"]})
    return 1.0 + np.random.default_rng(seed).pareto(shape, sources)


def correlate_rates(rates: Floats, readers: Ints, correlation: Correlation, seed: Seed) -> Floats:
    """Return the rates of sources that `readers` int64[m] queries read, float64[m].

    "random" keeps the order of the draws. "positive" gives the largest to the most popular
    source and so on down, "negative" the other way round; equally popular sources are ranked at
    random. These three have one and the same distribution of rates. "proportional" multiplies
    each draw by its source's popularity, "inverse" divides it; both change the distribution.
    """
    if correlation == "random":
        return rates.copy()
    if correlation == "proportional":
        return rates * readers
    if correlation == "inverse":
        return rates / np.maximum(readers, 1)
    by_chance = np.random.default_rng(seed).random(len(readers))
    ranking = np.lexsort((by_chance, readers))
    ordered = np.sort(rates)
    given = np.empty_like(rates)
    given[ranking] = ordered if correlation == "positive" else ordered[::-1]
    return given
