"""The state of a search: where units are, who reads which stream where, and loads of nodes."""

from typing import NamedTuple

import numpy as np

from algorithms.compiled import inlined
from algorithms.placement.improve.problem import ImproveProblem
from algorithms.vocabulary import Flags, Floats, Ints, SmallInts


class Board(NamedTuple):
    """What compiled loops read and change; u units, m streams, k nodes.

    `units` int64[...]: those that may move; `targets` int64[...]: the nodes that may receive.
    `spans` int64[m + 1], `readers` int32[...]: the units that read all of a stream. `hosts`
    int32[u], `counts` int32[m, k], `loads` float64[k] and `added` float64[m, k] (see
    `ImproveProblem.added`) change with each move. The others are the problem's.
    """

    rates: Floats
    indptr: Ints
    indices: SmallInts
    spans: Ints
    readers: SmallInts
    parts: Floats
    costs: Floats
    present: SmallInts
    capacities: Floats
    open: Flags
    units: Ints
    targets: Ints
    hosts: SmallInts
    counts: SmallInts
    loads: Floats
    added: Floats


def lay_out(problem: ImproveProblem, hosts: SmallInts) -> Board:
    """Return the board of an assignment; it shares no memory that changes."""
    spans, readers = problem.readers_by_stream()
    return Board(
        problem.rates,
        problem.indptr,
        problem.indices,
        spans,
        readers,
        problem.parts,
        problem.costs,
        problem.present,
        problem.capacities,
        problem.open,
        np.flatnonzero(problem.movable),
        np.flatnonzero(problem.open),
        hosts.copy(),
        problem.readers_by_node(hosts),
        problem.loads(hosts),
        problem.added(hosts),
    )


@inlined
def change(
    unit: int,
    home: int,
    target: int,
    rates: Floats,
    indptr: Ints,
    indices: SmallInts,
    parts: Floats,
    counts: SmallInts,
    added: Floats,
) -> tuple[float, float]:
    """Return by how much a move lowers the load of its home, and raises that of its target."""
    less, more = 0.0, 0.0
    for slot in range(indptr[unit], indptr[unit + 1]):
        stream = indices[slot]
        if parts[slot] < 1.0:
            less += parts[slot] * rates[stream] * int(counts[stream, home] == 0)
            more += parts[slot] * rates[stream] * int(counts[stream, target] == 0)
        else:
            less += added[stream, home] * int(counts[stream, home] == 1)
            more += added[stream, target] * int(counts[stream, target] == 0)
    return less, more


@inlined
def move(
    unit: int,
    home: int,
    target: int,
    less: float,
    more: float,
    rates: Floats,
    indptr: Ints,
    indices: SmallInts,
    parts: Floats,
    hosts: SmallInts,
    counts: SmallInts,
    loads: Floats,
    added: Floats,
) -> None:
    """Move a unit whose `change` is known."""
    for slot in range(indptr[unit], indptr[unit + 1]):
        stream = indices[slot]
        if parts[slot] < 1.0:
            added[stream, home] += parts[slot] * rates[stream]
            added[stream, target] -= parts[slot] * rates[stream]
        else:
            counts[stream, home] -= 1
            counts[stream, target] += 1
    hosts[unit] = target
    loads[home] -= less
    loads[target] += more
