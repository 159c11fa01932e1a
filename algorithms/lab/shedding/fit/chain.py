"""Tables of nodes whose streams pass to children, mapped back and merged (section 6.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.errors import TooLarge
from algorithms.lab.shedding.fit.leaf import Settings, at_levels, levels_of
from algorithms.lab.shedding.fit.local import LocalModel, Worth
from algorithms.lab.shedding.fit.sampling import MAX_ROWS, ROUNDING, grid
from algorithms.lab.shedding.fit.table import RowPlans, Table, Weights, ascending, is_needed
from algorithms.vocabulary import Floats, Ints

MAX_PAIRS: Final = 20_000_000


@dataclass(frozen=True, eq=False)
class ChainPlans:
    """Plans of rows that are rows of each child, `picks` int64[n, children]."""

    rates: Floats
    picks: Ints

    def flows(self, row: int) -> Floats:
        """Return the flows of the streams, float64[e]."""
        return np.asarray(self.rates[row])

    def children(self, row: int) -> list[Weights | None]:
        """Return the row of each child."""
        return [{int(pick): 1.0} for pick in self.picks[row]]


def chain_table(
    local: LocalModel, settings: Settings, worth: Worth, children: Mapping[str, Table]
) -> tuple[Table, RowPlans]:
    """Return the table of a node without splits and merges on the way to its children.

    The rates of a row of a child are divided by the selectivity before it; rows of different
    children, and samples of the streams that end on the node, are combined; what overloads the
    node is left out. Nothing is rounded, so the node adds no error.
    """
    limits = np.vstack([local.limits, settings.limits])
    table = _own_table(local, settings, worth)
    picks = np.zeros((table.size, 0), np.int64)
    first = 0
    for child in local.cluster.outlets:
        streams = len(children[child].rates.T)
        mapped = _mapped(local, children[child], slice(first, first + streams))
        rows, others = _pairs(table, mapped, limits, local.cluster.name)
        table = Table(
            table.rates[rows] + mapped.rates[others],
            table.scores[rows] + mapped.scores[others],
            table.whole[rows] & mapped.whole[others],
        )
        picks = np.column_stack([picks[rows], others])
        first += streams
    order = ascending(table.rates, table.scores)
    table, picks = table.take(order), picks[order]
    if settings.outer:
        needed = is_needed(table)
        table, picks = table.take(needed), picks[needed]
    return table, ChainPlans(table.rates, picks)


def _own_table(local: LocalModel, settings: Settings, worth: Worth) -> Table:
    """Return the combinations of samples of the streams that end on the node."""
    with np.errstate(divide="ignore"):
        tops = np.where(local.through, 0.0, 1 / local.limits.max(axis=0))
    levels = levels_of(local, settings, worth, tops)
    places = grid(levels, np.vstack([local.limits, settings.limits]), outer=False)
    rates = at_levels(levels, places)
    scores = rates @ (worth.values - worth.free)
    return Table(rates, scores, np.ones(len(rates), np.bool_))


def _mapped(local: LocalModel, table: Table, outlets: slice) -> Table:
    """Return the table of a child in rates of the node's streams."""
    gains = local.gains[outlets]
    streams = gains.argmax(axis=1)
    rates = np.zeros((table.size, gains.shape[1]))
    rates[:, streams] = table.rates / gains[np.arange(len(streams)), streams]
    return Table(rates, table.scores, table.whole)


def _pairs(first: Table, second: Table, limits: Floats, where: str) -> tuple[Ints, Ints]:
    """Return the rows of two tables that are feasible together."""
    pairs = first.size * second.size
    if pairs > MAX_PAIRS:
        raise TooLarge(f"{where}: {first.size:,} x {second.size:,} rows of children to combine, at "
                       f"most {MAX_PAIRS:,}; raise epsilon, or use lp or exact")  # fmt: skip
    feasible = np.ones((first.size, second.size), np.bool_)
    for row in limits:
        loads = (first.rates @ row)[:, None] + second.rates @ row
        feasible &= loads <= 1 + ROUNDING
    rows, others = np.nonzero(feasible)
    if len(rows) > MAX_ROWS:
        raise TooLarge(f"{where}: {len(rows):,} rows of children, at most {MAX_ROWS:,}; raise "
                       "epsilon, or use lp or exact")  # fmt: skip
    return rows, others
