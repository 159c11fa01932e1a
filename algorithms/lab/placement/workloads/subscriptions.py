"""The sources of each query: the bipartite graph of section 6.1, without rates or servers."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from algorithms.placement.problem import PlacementProblem
from algorithms.vocabulary import Floats, Ints, SmallInts


@dataclass(frozen=True, eq=False)
class Subscriptions:
    """Query q reads the sources `indices[indptr[q]:indptr[q + 1]]`, each once.

    `indptr` int64[n + 1], `indices` int32[...], `sources`: m, the number of sources.
    Rates, servers and slack make a problem of it.
    """

    indptr: Ints
    indices: SmallInts
    sources: int

    @property
    def queries(self) -> int:
        """Number of queries, n."""
        return len(self.indptr) - 1

    @cached_property
    def readers(self) -> Ints:
        """How many queries read each source, int64[m]: its popularity."""
        return np.bincount(self.indices, minlength=self.sources).astype(np.int64)

    def problem(self, servers: int, nu: float, rates: Floats | None = None) -> PlacementProblem:
        """Return the problem with these `rates` float64[m]; without them, unit rates.

        Raises `BadProblem` on invalid values.
        """
        flows = np.ones(self.sources) if rates is None else rates
        return PlacementProblem.from_arrays(flows, self.indptr, self.indices, servers, nu)


def fixed_width(rows: SmallInts, sources: int) -> Subscriptions:
    """Return subscriptions of queries that all read as many sources: `rows` int32[n, d]."""
    queries, width = rows.shape
    return Subscriptions(np.arange(queries + 1, dtype=np.int64) * width, rows.ravel(), sources)
