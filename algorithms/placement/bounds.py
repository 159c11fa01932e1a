"""Lower bounds: traffic that no placement within the balance constraint undercuts."""

import math
from typing import TYPE_CHECKING

import numpy as np

from algorithms.vocabulary import Ints

if TYPE_CHECKING:
    from algorithms.placement.problem import PlacementProblem


def lower_bound(problem: "PlacementProblem", caps: Ints) -> float:
    """Return traffic that no placement with at most `caps[j]` queries per server undercuts."""
    return cover_bound(problem, caps)


def cover_bound(problem: "PlacementProblem", caps: Ints) -> float:
    """Return the bound of each source alone: a source reaches as many servers as hold its readers.

    With equal caps C that is ceil(r / C) for r readers; else as many of the largest servers.
    """
    if not problem.queries or int(caps.sum()) < problem.queries:
        return problem.live_rate
    places = np.cumsum(np.sort(caps)[::-1])
    servers = np.searchsorted(places, problem.readers, side="left") + 1
    return math.fsum(problem.rates * np.where(problem.readers > 0, servers, 0))
