"""Rules for the rows that the table of a root leaves out; two of the paper's are unsafe.

docs/decisions/0043-rows-of-feasible-input-tables.md has the proofs and a counterexample.
"""

from enum import StrEnum

import numpy as np

from algorithms.compiled import compiled
from algorithms.lab.shedding.fit.table import Table, is_needed
from algorithms.vocabulary import Flags, Floats


class RowRule(StrEnum):
    """Which rows are kept. `NEEDED` and `ALL` keep the guarantee, `PARETO` and `TRIANGLE` do not.

    `PARETO` (sections 5.1, 6.2.1): rows on the boundary of the feasible rates, below no other row.
    `TRIANGLE` (section 6.2.1): rows outside the triangle between 0 and the largest feasible rate of
    each stream.
    """

    NEEDED = "needed"
    ALL = "all"
    PARETO = "pareto"
    TRIANGLE = "triangle"


def kept_rows(table: Table, rule: RowRule) -> Flags:
    """Return which rows of the table of a root a rule keeps, bool[n]."""
    if rule is RowRule.NEEDED:
        return is_needed(table)
    if rule is RowRule.ALL:
        return np.ones(table.size, np.bool_)
    # The row of rates 0 stays, so that every rate has a row.
    zero = ~table.rates.any(axis=1)
    if rule is RowRule.PARETO:
        return np.asarray(zero | _is_maximal(table.rates))
    largest = table.rates.max(axis=0)
    used = largest > 0
    return np.asarray(zero | (table.rates[:, used] @ (1 / largest[used]) >= 1))


@compiled
def _is_maximal(rates: Floats) -> Flags:
    """Return which rows are below no other row, bool[n]."""
    result = np.ones(len(rates), np.bool_)
    for row in range(len(rates)):
        for other in range(len(rates)):
            below = other != row
            for stream in range(rates.shape[1]):
                if rates[row, stream] > rates[other, stream]:
                    below = False
                    break
            if below:
                result[row] = False
                break
    return result
