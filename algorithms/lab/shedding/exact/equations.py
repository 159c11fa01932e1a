"""The linear program of a network as flat arrays, and its dual by the profit recursion.

With prices p >= 0 of the resources, the profit of a record that a drop location keeps is its value,
minus the price of what it needs, plus the profits of the split edges that it reaches, where those
are positive: a split edge with a loss is dropped. So the optimal value is

    V(r) = min over p >= 0 of  p . capacity + sum over inputs of r_i max(0, profit_i(p)),

the least of linear functions of the rates, the cuts (duality of equations 1 to 11 of paper 003).
A floor of an output is a resource with negative loads, whose capacity is proportional to the rates.
"""

from typing import Final, NamedTuple

import numpy as np

from algorithms.compiled import compiled, inlined
from algorithms.shedding.flows import FlowModel
from algorithms.vocabulary import Floats, Ints, SmallInts

# States of a drop location in an optimal basis.
DROPPED: Final = 0
FULL: Final = 1
PARTIAL: Final = 2
# Outputs with a floor x inputs: their capacities depend on the rates of all inputs.
MAX_FLOORS: Final = 1_000_000


class Equations(NamedTuple):
    """A flow model, for compiled code; `d` locations, the first `i` of them inputs, `r` rows.

    Rows are the resources that some flow loads, then the outputs with a floor. `order` int64[d]:
    locations, each after those that feed it. `fed_*`: of each location, the split edges that it
    feeds, with the records that arrive there per record kept. `feeds_*`: of each split edge, the
    locations that feed it. `load_*`: of each location, the rows that it loads; `row_*`: of each
    row, the locations that load it. The capacity of row k at rates r is
    `capacity`[k] + `slope`[k] . r; `slope` float64[r, i], or float64[0, i] without floors.
    """

    inputs: int
    order: Ints
    values: Floats
    fed_start: Ints
    fed: Ints
    fed_gain: Floats
    feeds_start: Ints
    feeds: Ints
    feeds_gain: Floats
    load_start: Ints
    load_row: Ints
    load: Floats
    row_start: Ints
    row: Ints
    row_load: Floats
    capacity: Floats
    slope: Floats


def loaded_resources(model: FlowModel) -> Ints:
    """Return the places of the resources that some flow loads."""
    if not model.loads.nnz:
        return np.empty(0, np.int64)
    return np.flatnonzero(model.loads.max(axis=1).toarray() > 0)


def floored_outputs(model: FlowModel) -> Ints:
    """Return the places of the outputs with a floor."""
    return np.flatnonzero(model.floors > 0)


def has_floors_of(eq: Equations, model: FlowModel) -> bool:
    """Return whether the equations have rows for all floors of their model."""
    return len(eq.capacity) == len(loaded_resources(model)) + len(floored_outputs(model))


def equations_of(model: FlowModel) -> Equations:
    """Return the arrays of a flow model, without its floors if they need too much memory."""
    from scipy.sparse import csr_array, vstack  # noqa: PLC0415 - its import takes a fifth of a second

    loaded, floored = loaded_resources(model), floored_outputs(model)
    rows = model.loads[loaded]
    capacity, slope = model.capacities[loaded], np.zeros((0, model.inputs))
    if 0 < len(floored) * model.inputs <= MAX_FLOORS:
        rows = csr_array(vstack([rows, -model.results[floored]]))
        capacity = np.concatenate([capacity, np.zeros(len(floored))])
        each = model.unshed(np.eye(model.inputs))
        least = -model.floors[floored, None] * (model.results[floored] @ each)
        slope = np.concatenate([np.zeros((len(loaded), model.inputs)), least])
    network = model.network
    depth = {operator.name: index for index, operator in enumerate(network.order)}
    splits = [depth.get(edge.source, -1) for edge in network.split_edges]
    order = np.concatenate(
        [np.arange(model.inputs), model.inputs + np.argsort(splits, kind="stable")]
    )
    return Equations(
        model.inputs, order.astype(np.int64), model.values,
        *_arrays(model.arrivals.tocsc()), *_arrays(model.arrivals),
        *_arrays(rows.tocsc()), *_arrays(rows), capacity, slope,
    )  # fmt: skip


def _arrays(matrix: object) -> tuple[Ints, Ints, Floats]:
    starts, places = matrix.indptr, matrix.indices  # type: ignore[attr-defined]
    data = np.ascontiguousarray(matrix.data, np.float64)  # type: ignore[attr-defined]
    return starts.astype(np.int64), places.astype(np.int64), data


@compiled
def profits(eq: Equations, prices: Floats) -> Floats:
    """Return the profit of a record that each location keeps, float64[d], at prices float64[r]."""
    return sized_profits(eq, prices)[0]


@compiled
def sized_profits(eq: Equations, prices: Floats) -> tuple[Floats, Floats]:
    """Return profits as `profits` does, and the sum of the sizes of their terms, float64[d].

    Profits that are much smaller than that are rounding.
    """
    result, size = eq.values.copy(), eq.values.copy()
    for position in range(len(eq.order) - 1, -1, -1):
        place = eq.order[position]
        total, terms = result[place], size[place]
        for k in range(eq.load_start[place], eq.load_start[place + 1]):
            cost = eq.load[k] * prices[eq.load_row[k]]
            total -= cost
            terms += abs(cost)
        for k in range(eq.fed_start[place], eq.fed_start[place + 1]):
            fed = eq.inputs + eq.fed[k]
            total += eq.fed_gain[k] * max(0.0, result[fed])
            terms += eq.fed_gain[k] * size[fed]
        result[place], size[place] = total, terms
    return result, size


@compiled
def reduced(eq: Equations, states: SmallInts, binding: Ints) -> tuple[Floats, Floats]:
    """Return value float64[d] and load float64[d, k] of binding rows per record, through all edges.

    Of a record that a location keeps, with the records that FULL split edges pass on, up to those
    in another state.
    """
    column = np.full(len(eq.capacity), -1)
    for k in range(len(binding)):
        column[binding[k]] = k
    value = eq.values.copy()
    load = np.zeros((len(value), len(binding)))
    for position in range(len(eq.order) - 1, -1, -1):
        place = eq.order[position]
        for k in range(eq.load_start[place], eq.load_start[place + 1]):
            if column[eq.load_row[k]] >= 0:
                load[place, column[eq.load_row[k]]] += eq.load[k]
        for k in range(eq.fed_start[place], eq.fed_start[place + 1]):
            target = eq.inputs + eq.fed[k]
            if states[target] == FULL:
                value[place] += eq.fed_gain[k] * value[target]
                for b in range(len(binding)):
                    load[place, b] += eq.fed_gain[k] * load[target, b]
    return value, load


@inlined
def capacity_of(eq: Equations, row: int, rates: Floats) -> float:
    """Return the capacity of a row at rates float64[i]."""
    result = eq.capacity[row]
    if len(eq.slope):
        for i in range(len(rates)):
            result += eq.slope[row, i] * rates[i]
    return float(result)


@inlined
def arriving_at(eq: Equations, place: int, rates: Floats, flows: Floats) -> float:
    """Return the records that arrive at a location, from the flows before it, float64[d]."""
    if place < eq.inputs:
        return float(rates[place])
    total = 0.0
    split = place - eq.inputs
    for k in range(eq.feeds_start[split], eq.feeds_start[split + 1]):
        total += eq.feeds_gain[k] * flows[eq.feeds[k]]
    return total


@compiled
def unshed_flows(eq: Equations, rates: Floats, flows: Floats) -> bool:
    """Write the flows without drops, float64[d]; return whether they load no row too much."""
    for position in range(len(eq.order)):
        place = eq.order[position]
        flows[place] = arriving_at(eq, place, rates, flows)
    for row in range(len(eq.capacity)):
        total = 0.0
        for k in range(eq.row_start[row], eq.row_start[row + 1]):
            total += eq.row_load[k] * flows[eq.row[k]]
        limit = capacity_of(eq, row, rates)
        if total > limit + 1e-12 * abs(limit):
            return False
    return True
