"""The optimizers and sparse arrays of scipy, imported when they are first used.

Their import takes a third of a second, which every process of Weir would spend at its start and
most never need. A process that forks for each computation imports them first (`load`): otherwise
each of its children would.
"""

from collections.abc import Sequence
from typing import Any

from algorithms.vocabulary import Floats, Ints


def load() -> None:
    """Import the optimizers, if they are not imported yet."""
    import scipy.optimize  # noqa: F401, PLC0415 - see above


def solve_milp(objective: Floats, upper: Any, constraints: Sequence[Any], **settings: Any) -> Any:
    """Return scipy's result of a mixed integer linear program.

    `upper`: the upper bounds of the variables, whose lower bounds are 0; `constraints`: those of
    `linear_constraint`; `settings`: integrality and options, as `scipy.optimize.milp` has them.
    """
    from scipy.optimize import Bounds, milp  # noqa: PLC0415 - see above

    return milp(objective, bounds=Bounds(0.0, upper), constraints=constraints, **settings)


def linear_constraint(rows: Any, lower: Any = -float("inf"), upper: Any = float("inf")) -> Any:
    """Return the constraint lower <= rows @ variables <= upper."""
    from scipy.optimize import LinearConstraint  # noqa: PLC0415 - see above

    return LinearConstraint(rows, lower, upper)


def best_assignment(gains: Floats | Ints) -> tuple[Ints, Ints]:
    """Return rows and columns of an assignment with the largest sum of `gains` float64[r, c]."""
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - see above

    rows, columns = linear_sum_assignment(gains, maximize=True)
    return rows, columns


def csr_array(*given: Any, **settings: Any) -> Any:
    """Return a `scipy.sparse.csr_array`."""
    from scipy import sparse  # noqa: PLC0415 - see above

    return sparse.csr_array(*given, **settings)
