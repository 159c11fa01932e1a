"""The linear program of load shedding in kept parts: flows over the flows without drops.

All variables are from 0 to 1, and so are the results of outputs; rates are part of the rows.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from algorithms.shedding.flows import FlowModel
from algorithms.vocabulary import Floats

# Fewer records per unit of time are none: their inverse is not a finite number.
_NONE: Final = 1e-150


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Rows for kept parts x float64[d] at some rates.

    `loads` sparse[r, d]: the used part of each resource, at most 1. `splits` sparse[*, d]: kept
    part of split edges minus what arrives, and of covered edges minus the other, at most 0.
    `results` sparse[o, d]: kept part of each output, with rows of zeros where there are no results
    without drops: `has_results` is 0 there.
    """

    unshed: Floats
    loads: Any
    splits: Any
    results: Any
    has_results: Floats

    @classmethod
    def of(cls, model: FlowModel, rates: Floats) -> "KeptRows":
        """Return the rows of a model at rates float64[i]."""
        from scipy.sparse import csr_array, diags_array, vstack  # noqa: PLC0415 - few plans need them

        unshed = model.unshed(rates)
        flows = diags_array(unshed)
        some = np.flatnonzero(unshed[model.inputs :] > _NONE)
        arrivals = diags_array(1 / unshed[model.inputs + some]) @ model.arrivals[some] @ flows
        places = (np.arange(len(some)), model.inputs + some)
        own = csr_array((np.ones(len(some)), places), shape=(len(some), len(unshed)))
        full = model.results @ unshed
        scale = np.divide(1.0, full, out=np.zeros(len(full)), where=full > _NONE)
        return cls(
            unshed,
            diags_array(1 / model.capacities) @ model.loads @ flows,
            # Flows that one covers are equal to it without drops, so their rows are those of parts.
            vstack([own - arrivals, model.covers]) if model.network.covers else own - arrivals,
            diags_array(scale) @ model.results @ flows,
            (full > _NONE).astype(np.float64),
        )


@dataclass(frozen=True, eq=False)
class KeptSolution:
    """Optimal kept parts float64[n], the objective, and the dual of each row, not negative."""

    kept: Floats
    objective: float
    duals: Floats


def maximize(gains: Floats, rows: Any, limits: Floats) -> KeptSolution | None:
    """Return an optimum of gains @ x with rows @ x <= limits, x from 0 to 1.

    None if there is no such x, or HiGHS does not find one.
    """
    from scipy.optimize import linprog  # noqa: PLC0415 - see above

    tolerances = dict.fromkeys(("primal_feasibility_tolerance", "dual_feasibility_tolerance"), 1e-9)
    answer = linprog(-gains, rows, limits, bounds=(0.0, 1.0), method="highs", options=tolerances)
    if answer.status != 0:
        return None
    return KeptSolution(answer.x, -float(answer.fun), -np.asarray(answer.ineqlin.marginals))
