"""Tables of nodes with splits or merges on the way to their children, by linear programs.

The rates that a subtree processes, with their results, form a convex set: a mixture of rows of a
child is feasible with the same mixture of their plans. So of all ways to feed the children, such as
the pairs of rates that a union sums to a row (section 6.3), a linear program picks the best one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from algorithms.errors import NotProven, TooLarge
from algorithms.lab.shedding.fit.leaf import Settings, at_levels, levels_of
from algorithms.lab.shedding.fit.local import LocalModel, Worth
from algorithms.lab.shedding.fit.sampling import ROUNDING, grid
from algorithms.lab.shedding.fit.table import (
    RowPlans,
    Table,
    Weights,
    ascending,
    is_needed,
    is_undominated,
)
from algorithms.optional import optional_module
from algorithms.shedding.lp import configured_highs
from algorithms.vocabulary import Flags, Floats

MAX_PROGRAMS: Final = 10_000
# Of the product of linear programs and rows of children: a microsecond each.
MAX_PROGRAM_ROWS: Final = 5_000_000
_INFINITY: Final = 1e30
# Relative difference of a flow from its bound that is rounding.
_CLOSE: Final = 1e-9


@dataclass(frozen=True, eq=False)
class MixturePlans:
    """Plans of rows as flows float64[n, d], and mixtures of rows of the children."""

    stored: Floats
    mixtures: list[list[Weights | None]]

    def flows(self, row: int) -> Floats:
        """Return the flows of the drop locations, float64[d]."""
        return np.asarray(self.stored[row])

    def children(self, row: int) -> list[Weights | None]:
        """Return the mixture of rows of each child."""
        return self.mixtures[row]


def mixture_table(
    local: LocalModel,
    settings: Settings,
    worth: Worth,
    children: Mapping[str, Table],
    worths: Mapping[str, Worth],
) -> tuple[Table, RowPlans]:
    """Return the table of any node: of each combination of samples, the best plan below it."""
    tables = [children[child] for child in local.cluster.outlets]
    samples = _samples(local, settings, worth, tables, worths)
    rates, scores, whole = samples.rates, samples.scores, samples.whole
    _check_size(local.cluster.name, int((~whole).sum()), sum(table.size for table in tables))
    program = _Program(local, tables, worths)
    stored = rates @ local.unshed.T
    mixtures: list[list[Weights | None]] = [[None] * len(tables) for _ in rates]
    for row in np.flatnonzero(~whole):
        value, flows, mixtures[row] = program.solve(rates[row])
        stored[row] = flows
        scores[row] = value - worth.free @ rates[row]
        used = flows[: len(worth.free)]
        close = (used >= rates[row] * (1 - _CLOSE)) | (worth.free > 0)
        rates[row] = np.where(close, rates[row], used)
    order = ascending(rates, scores)
    table = Table(rates[order], scores[order], whole[order])
    order = order[is_undominated(table)]
    table = Table(rates[order], scores[order], whole[order])
    return table, MixturePlans(stored[order], [mixtures[row] for row in order])


def _check_size(where: str, programs: int, rows: int) -> None:
    if programs > MAX_PROGRAMS or programs * rows > MAX_PROGRAM_ROWS:
        raise TooLarge(
            f"{where}: {programs:,} linear programs with {rows:,} rows of children; at most "
            f"{MAX_PROGRAMS:,}, and {MAX_PROGRAM_ROWS:,} for their product; raise epsilon, or use "
            "lp or exact"
        )


def _samples(
    local: LocalModel,
    settings: Settings,
    worth: Worth,
    tables: list[Table],
    worths: Mapping[str, Worth],
) -> Table:
    """Return combinations of samples; scores are those of rows that are whole."""
    largest = np.concatenate([np.zeros(0), *(table.rates.max(axis=0) for table in tables)])
    levels = levels_of(local, settings, worth, local.useful_rates(largest))
    # Without a split on the way, children get no more than their largest rates.
    bounded = (largest > 0) & (local.outlet_values(worths)[1] == 0)
    passed = local.forced_gains[bounded] / largest[bounded, None]
    limits = np.vstack([local.forced, settings.limits, passed])
    rates = at_levels(levels, grid(levels, limits, outer=False))
    scores = rates @ (worth.values - worth.free)
    table = Table(rates, scores, _is_whole(local, rates, tables))
    return table.take(is_needed(table)) if settings.outer else table


def _is_whole(local: LocalModel, rates: Floats, tables: list[Table]) -> Flags:
    """Return which rates need no drop on the node, nor below it as far as tables show, bool[n]."""
    result: Flags = np.asarray((rates @ local.limits.T <= 1 + ROUNDING).all(axis=1))
    first = 0
    for table in tables:
        streams = table.rates.shape[1]
        arriving = rates @ local.gains[first : first + streams].T
        first += streams
        rows = table.rates[table.whole]
        for row in np.flatnonzero(result):
            result[row] = (rows >= arriving[row]).all(axis=1).any()
    return result


class _Program:
    """The best flows of a node and mixture of rows of its children, below any rates."""

    def __init__(self, local: LocalModel, tables: list[Table], worths: Mapping[str, Worth]) -> None:
        self.local, self.tables = local, tables
        self.largest = np.concatenate([np.zeros(0), *(t.rates.max(axis=0) for t in tables)])
        self.largest[self.largest == 0] = 1.0
        self.unit = _unit(local, self.largest)
        free = local.outlet_values(worths)[1]
        weights = np.asarray(local.model.results.T @ local.output_values(free))
        scores = [table.scores / self.unit for table in tables]
        self.values = np.concatenate([weights, *scores])
        self.highs = self._built(free)

    def solve(self, rates: Floats) -> tuple[float, Floats, list[Weights | None]]:
        """Return the results, the flows, and the mixtures of rows. Raises `NotProven`."""
        count = len(rates)
        places = np.arange(count, dtype=np.int32)
        self.highs.changeColsBounds(count, places, np.zeros(count), rates / self.unit)
        self.highs.run()
        if self.highs.getModelStatus().name != "kOptimal":
            # A warm start may end in a basis that is singular but for rounding.
            self.highs.clearSolver()
            self.highs.run()
        if self.highs.getModelStatus().name != "kOptimal":
            status = self.highs.getModelStatus().name
            raise NotProven(f"HiGHS found no optimum: {status}")
        solution = np.maximum(self.highs.getSolution().col_value, 0.0)
        locations = len(self.local.model.values)
        flows = solution[:locations] * self.unit
        flows[:count] = np.minimum(flows[:count], rates)
        mixtures: list[Weights | None] = []
        first = locations
        for table in self.tables:
            weights = solution[first : first + table.size]
            first += table.size
            mixtures.append({int(row): float(weights[row]) for row in np.flatnonzero(weights)})
        return float(self.values @ solution) * self.unit, flows, mixtures

    def _built(self, free: Floats) -> Any:
        """Return the program: rows for resources, split edges, outlets, and each child's mixture.

        Flows are in `unit`.
        """
        from scipy import sparse  # noqa: PLC0415 - most processes plan no shedding

        highspy = optional_module("highspy")
        local, model = self.local, self.local.model
        splits, outlets = len(local.network.split_edges), len(free)
        own = sparse.csr_array(
            (np.ones(splits), (np.arange(splits), model.inputs + np.arange(splits))),
            shape=(splits, len(model.values)),
        )
        loads = sparse.diags_array(self.unit / model.capacities) @ model.loads
        blocks = [[loads], [own - model.arrivals]]
        if self.tables:
            # In parts of what a child processes at most.
            scale = sparse.diags_array(1 / self.largest)
            exits = scale @ model.results[model.results.shape[0] - outlets :] * self.unit
            demand = scale @ sparse.block_diag([table.rates.T for table in self.tables])
            shares = sparse.block_diag([np.ones((1, table.size)) for table in self.tables])
            blocks = [[*row, None] for row in blocks] + [[exits, -demand], [None, shares]]
        matrix = sparse.csr_array(sparse.block_array(blocks))
        resources, children = len(model.capacities), len(self.tables)
        upper = [np.ones(resources), np.zeros(splits), np.where(free > 0, _INFINITY, 0.0),
                 np.ones(children)]  # fmt: skip
        lower = [np.full(resources + splits, -_INFINITY), np.zeros(outlets),
                 np.full(children, -_INFINITY)]  # fmt: skip
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = matrix.shape
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.col_cost_ = self.values
        lp.col_lower_ = np.zeros(lp.num_col_)
        lp.col_upper_ = np.full(lp.num_col_, _INFINITY)
        lp.row_lower_, lp.row_upper_ = np.concatenate(lower), np.concatenate(upper)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = matrix.indptr
        lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indices, matrix.data
        return configured_highs(lp)


def _unit(local: LocalModel, largest: Floats) -> float:
    """Return the flow at which the first resource, or child, is used up by one location."""
    loads = np.asarray(local.model.loads.max(axis=1).todense())
    results = np.asarray(local.model.results.max(axis=1).todense())
    limits = np.concatenate([local.model.capacities, largest])
    coefficients = np.concatenate([loads, results[len(results) - len(largest) :]])
    used = coefficients > 0
    return float(np.min(limits[used] / coefficients[used])) if used.any() else 1.0
