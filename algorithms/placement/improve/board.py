"""The state of a search: where units are, who reads which stream where, and loads of nodes."""

from typing import NamedTuple

import numpy as np

from algorithms.compiled import inlined
from algorithms.placement.improve.problem import ImproveProblem
from algorithms.vocabulary import Flags, Floats, Ints, SmallInts


class Board(NamedTuple):
    """What compiled loops read and change; u units, m streams, k nodes.

    `units` int64[...]: those that may move; `targets` int64[...]: the nodes that may receive.
    `spans` int64[m + 1], `readers` int32[...]: the units that read a stream. `hosts` int32[u],
    `counts` int32[m, k] and `loads` float64[k] change with each move. The others are the
    problem's.
    """

    rates: Floats
    indptr: Ints
    indices: SmallInts
    spans: Ints
    readers: SmallInts
    own: Floats
    costs: Floats
    present: SmallInts
    capacities: Floats
    open: Flags
    units: Ints
    targets: Ints
    hosts: SmallInts
    counts: SmallInts
    loads: Floats


def lay_out(problem: ImproveProblem, hosts: SmallInts) -> Board:
    """Return the board of an assignment; it shares no memory that changes."""
    spans, readers = problem.readers_by_stream()
    return Board(
        problem.rates,
        problem.indptr,
        problem.indices,
        spans,
        readers,
        problem.own,
        problem.costs,
        problem.present,
        problem.capacities,
        problem.open,
        np.flatnonzero(problem.movable),
        np.flatnonzero(problem.open),
        hosts.copy(),
        problem.readers_by_node(hosts),
        problem.loads(hosts),
    )


@inlined
def change(
    unit: int,
    home: int,
    target: int,
    rates: Floats,
    indptr: Ints,
    indices: SmallInts,
    own: Floats,
    counts: SmallInts,
) -> tuple[float, float]:
    """Return by how much a move lowers the load of its home, and raises that of its target."""
    less, more = own[unit], own[unit]
    for slot in range(indptr[unit], indptr[unit + 1]):
        stream = indices[slot]
        less += rates[stream] * int(counts[stream, home] == 1)
        more += rates[stream] * int(counts[stream, target] == 0)
    return less, more


@inlined
def move(
    unit: int,
    home: int,
    target: int,
    less: float,
    more: float,
    indptr: Ints,
    indices: SmallInts,
    hosts: SmallInts,
    counts: SmallInts,
    loads: Floats,
) -> None:
    """Move a unit whose `change` is known."""
    for slot in range(indptr[unit], indptr[unit + 1]):
        stream = indices[slot]
        counts[stream, home] -= 1
        counts[stream, target] += 1
    hosts[unit] = target
    loads[home] -= less
    loads[target] += more
